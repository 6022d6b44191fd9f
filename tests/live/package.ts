// What a page in TypeScript writes. Lines behind `@ts-expect-error` must be refused, or the compiler complains.
import { live, matches, type Update } from "staunch-live";

interface Score {
  home: number;
  away: number;
}

const data = live({ base: "https://live.example.org/", worker: "/live.js", keep: 3, share: true });
data.onstatus = ({ state, delayMs }) => console.log(state, delayMs?.toFixed(1));
data.ongap = ({ topic, missed }) => console.log(`${topic}: ${missed}`);
const tell = ({ data: score, number }: Update<Score>): void => console.log(score.home - score.away, number ?? 0);
const stop: () => void = data.watch<Score>(["match.1", "match.*"], tell);
stop();
export const isMatch: boolean = matches("match.*", "match.1");

// @ts-expect-error an option that is not there
live({ workers: "/live.js" });
// @ts-expect-error a value whose type was not said
data.watch("match.1", ({ data: score }) => score.home);
// @ts-expect-error the state is the server's to tell
data.status = { state: "open" };
