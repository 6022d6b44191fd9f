// Fetches from the server named in the argument with fetch and node:http, and prints a verdict in JSON.
import http from 'node:http';

const url = process.argv[2];
const verdict = { client: 'node' };

const page = await fetch(`${url}/page.html`, { headers: { 'accept-encoding': 'identity' } });
const text = await page.text();
verdict.html = page.status === 200 && text.length === 7200 && page.headers.get('content-type').startsWith('text/html');
const head = await fetch(`${url}/page.html`, { method: 'HEAD', headers: { 'accept-encoding': 'identity' } });
verdict.head = head.status === 200 && head.headers.get('content-length') === '7200';
const part = await fetch(`${url}/a.txt`, { headers: { range: 'bytes=7-11' } });
verdict.range = part.status === 206 && await part.text() === 'world';
const same = await fetch(`${url}/page.html`, {
  headers: { 'if-none-match': page.headers.get('etag'), 'accept-encoding': 'identity' },
});
verdict.not_modified = same.status === 304 && await same.text() === '';
const packed = await fetch(`${url}/page.html`, { headers: { 'accept-encoding': 'gzip' } });
verdict.gzip = packed.headers.get('content-encoding') === 'gzip' && await packed.text() === text;

// fetch does not say which connection it used; an agent of one socket does.
const agent = new http.Agent({ keepAlive: true, maxSockets: 1 });
const port = () => new Promise((resolve, reject) => {
  const request = http.get(`${url}/a.txt`, { agent }, (response) => {
    const { localPort } = response.socket;
    response.resume().on('end', () => resolve(localPort));
  });
  request.on('error', reject);
});
verdict.reuse = await port() === await port();
agent.destroy();
console.log(JSON.stringify(verdict));
process.exit(0);
