// An application by HTTPS: `node secured.mjs CERTIFICATE KEY [AUTHORITY]`. With an authority it asks clients for
// certificates of it. Tells its port on a line.
import crypto from 'node:crypto';
import fs from 'node:fs';
import https from 'node:https';

const [certificate, key, authority] = process.argv.slice(2).map((file) => fs.readFileSync(file));
const options = { cert: certificate, key, ...(authority && { ca: authority, requestCert: true, rejectUnauthorized: true }) };
let connections = 0;

const server = https.createServer(options, async (request, response) => {
  const { socket } = request;
  switch (request.url) {
    case '/who':
      response.end(JSON.stringify({
        name: socket.servername, resumed: socket.isSessionReused(), connections, forwarded: request.headers['x-forwarded-proto'],
        client: socket.getPeerCertificate().subjectaltname ?? null,
      }));
      break;
    case '/sum': {
      const sum = crypto.createHash('sha256');
      for await (const piece of request) sum.update(piece);
      response.end(sum.digest('hex'));
      break;
    }
    case '/large':
      response.end(Buffer.alloc(3_000_000, 'x'));
      break;
    case '/close':
      response.setHeader('Connection', 'close');
      response.end('bye');
      break;
    // Two answers without a length: one whose end is said by TLS, one that is cut off on the way.
    case '/ends':
      socket.write('HTTP/1.1 200 OK\r\n\r\nwhole');
      socket.end();
      break;
    case '/cut':
      socket.write('HTTP/1.1 200 OK\r\n\r\npart', () => socket._handle.close());
      break;
    default:
      response.statusCode = 404;
      response.end();
  }
});
server.on('secureConnection', () => { connections += 1; });
server.on('upgrade', (request, socket) => {
  socket.write('HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n');
  socket.pipe(socket);
});
server.listen(0, '127.0.0.1', () => console.log(server.address().port));
