// A match: its score, its report, and how much of the ball the home team had.
import { points, poll, show, watch } from "./live-page.js";

const POINTS_MAX = 60;
// A line of fewer points ends before the right edge.
const POINTS_MIN = 12;
const possessions = [];
let minuteBefore = -1;

watch(["match.1"], { transport: "events" }, ({ data: { minute, teams, score, possession, lines } }) => {
  if (minuteBefore < 0) pollReport();
  if (minute < minuteBefore) possessions.length = 0;
  minuteBefore = minute;
  show("home", teams[0]);
  show("away", teams[1]);
  show("goals", `${score[0]} : ${score[1]}`);
  show("minute", minute < 90 ? `${minute}th minute`.replace(/(^|[^1])1th/, "$11st").replace(/(^|[^1])2th/, "$12nd")
    .replace(/(^|[^1])3th/, "$13rd") : "It is over. The next match begins soon.");
  show("above", teams[0]);
  show("below", teams[1]);
  show("possession", `${possession} %`);
  possessions.push(possession);
  if (possessions.length > POINTS_MAX) possessions.shift();
  const line = points(possessions, 20, 80, POINTS_MIN);
  document.getElementById("line").setAttribute("points", line.join(" "));
  const [end] = line.at(-1).split(",");
  document.getElementById("area").setAttribute("d", `M0,30 L${line.join(" L")} L${end},30 Z`);
  report(lines);
});

// The whole report is polled: where its topic is told as differences, a poll costs what is new.
const pollReport = () => poll("report.1", 10_000, ({ lines }, { bytes, of }) => {
  const count = `${lines.length} ${lines.length === 1 ? "line" : "lines"}`;
  show("polled", `The whole report, ${count}, is polled: ${bytes} bytes by the last poll, of ${of}.`);
});

function report(lines) {
  const entries = lines.map(({ minute, text, goal }) => {
    const entry = document.createElement("li");
    const time = document.createElement("b");
    time.textContent = `${minute}\u2032`;
    entry.append(time, ` ${text}`);
    entry.classList.toggle("goal", goal);
    return entry;
  });
  document.getElementById("report").replaceChildren(...entries);
}
