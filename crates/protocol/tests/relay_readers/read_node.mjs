// Reads requests or answers with node's own reader (llhttp), each line of the standard input a connection of its
// own: `request HEX`, or `answer METHOD HEX`. Tells on a line of the standard output what it understood.
import fs from 'node:fs';
import http from 'node:http';
import { Duplex } from 'node:stream';

const hex = (text) => Buffer.from(text, 'latin1').toString('hex');

/** A connection on which these bytes come, and then the end. */
function connection(bytes) {
  let sent = false;
  return new Duplex({
    read() {
      if (!sent) {
        sent = true;
        this.push(bytes);
        this.push(null);
      }
    },
    write(chunk, encoding, done) { done(); },
  });
}

async function whole(message) {
  const pieces = [];
  for await (const piece of message) pieces.push(piece);
  return Buffer.concat(pieces).toString('hex');
}

/** Every request: `METHOD:TARGET:HOST:BODY`, the host without its port; or `error`. */
function requests(bytes) {
  return new Promise((resolve) => {
    const understood = [];
    let ended = false;
    let pending = 0;
    const tell = () => ended && pending === 0 && resolve(understood.join(' '));
    const server = http.createServer({ maxHeaderSize: 65536 }, async (request, response) => {
      pending += 1;
      response.on('close', () => {
        pending -= 1;
        tell();
      });
      const place = understood.push('cut') - 1;
      try {
        const body = await whole(request);
        const host = (request.headers.host ?? '').replace(/:\d*$/, '');
        understood[place] = [request.method, hex(request.url), hex(host), body].join(':');
      } catch {
        // The connection ended within the body.
      }
      response.end();
    });
    server.httpAllowHalfOpen = true;
    // The requests before are answered still.
    server.on('clientError', () => {
      understood.push('error');
      ended = true;
      tell();
    });
    const socket = connection(bytes);
    server.emit('connection', socket);
    const end = () => {
      ended = true;
      tell();
    };
    socket.on('end', () => setImmediate(end)).on('close', end);
  });
}

/** The answer: `STATUS:BODY:NAME=VALUE,...`, or `error`. */
function answer(method, bytes) {
  return new Promise((resolve) => {
    const request = http.request({ method, createConnection: () => connection(bytes), maxHeaderSize: 1 << 17 });
    request.on('error', () => resolve('error'));
    request.on('response', async (response) => {
      try {
        const body = await whole(response);
        const fields = [];
        for (let at = 0; at < response.rawHeaders.length; at += 2) {
          fields.push(`${hex(response.rawHeaders[at])}=${hex(response.rawHeaders[at + 1])}`);
        }
        resolve(`${response.statusCode}:${body}:${fields.join(',')}`);
      } catch {
        resolve('error');
      }
    });
    request.end();
  });
}

for (const line of fs.readFileSync(0, 'latin1').split('\n').slice(0, -1)) {
  const words = line.split(' ');
  const bytes = Buffer.from(words.pop(), 'hex');
  console.log(words[0] === 'request' ? await requests(bytes) : await answer(words[1], bytes));
}
