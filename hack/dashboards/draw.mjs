// Draws the dashboards of config/dashboards to docs/images, from the metrics that a running Prometheus has. The panels are those of
// Grafana's library @grafana/ui; no Grafana server runs. Prometheus has the rules of config/monitoring and scrapes every 5 seconds.
//
//   make browser-packages && apt-get install pngquant
//   cd hack/dashboards && npm install --ignore-scripts --no-package-lock
//   node draw.mjs http://127.0.0.1:9090 START END [FOLDER]      # the times are in Unix seconds
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { buildSync } from 'esbuild';

const here = import.meta.dirname;
const root = `${here}/../..`;
const icons = `${here}/node_modules/@grafana/ui/dist/public`;
const [prometheus, start, end, folder = `${root}/docs/images`] = process.argv.slice(2);
const [width, maxBytes] = [1320, 150 << 10]; // of a picture

const bundle = buildSync({
  entryPoints: [`${here}/page.jsx`], outdir: '/', bundle: true, write: false, jsx: 'automatic', logLevel: 'error',
  define: { 'process.env.NODE_ENV': '"production"', global: 'window' }, loader: { '.svg': 'empty', '.ttf': 'empty' },
}).outputFiles;
const types = { css: 'text/css', html: 'text/html', js: 'text/javascript', svg: 'image/svg+xml' };
let page = '';
const server = createServer((request, answer) => {
  const path = request.url === '/' ? '/index.html' : request.url.replace(/^\/public\/build/, '');
  const icon = /img\/icons\/[a-z-]+\/[a-z-]+\.svg$/.exec(path)?.[0];
  const built = bundle.find((file) => file.path === path);
  const body = path === '/index.html' ? page : built?.contents ?? (icon && existsSync(`${icons}/${icon}`) ? readFileSync(`${icons}/${icon}`) : null);
  answer.writeHead(body === null ? 404 : 200, { 'Content-Type': types[path.split('.').pop()] ?? 'text/plain' }).end(body);
}).listen(0, '127.0.0.1');
await once(server, 'listening');

for (const name of ['agent', 'controlplane', 'fleet']) {
  const dashboard = JSON.parse(readFileSync(`${root}/config/dashboards/${name}.json`));
  const picture = { dashboard, prometheus, width, start: Number(start), end: Number(end) };
  page = `<!doctype html><meta charset="utf-8"><link rel="stylesheet" href="page.css"><div id="root"></div>
    <script>window.picture = ${JSON.stringify(picture)}</script><script src="page.js"></script>`;
  const height = 44 + 38 * Math.max(...dashboard.panels.map(({ gridPos }) => gridPos.y + gridPos.h));
  const file = `${folder}/dashboard-${name}.png`;
  const browser = spawn('chromium-headless-shell', [
    '--no-sandbox', '--disable-gpu', '--hide-scrollbars', '--enable-logging=stderr', '--virtual-time-budget=15000',
    `--window-size=${width},${height}`, `--screenshot=${file}`, `http://127.0.0.1:${server.address().port}/`,
  ]);
  let log = '';
  browser.stderr.on('data', (text) => { log += text; });
  await once(browser, 'close');
  for (const message of log.split('\n').filter((entry) => /CONSOLE.*(failed|no data):/.test(entry))) {
    console.error(`${name}: ${message}`);
    process.exitCode = 1;
  }
  execFileSync('pngquant', ['--force', '--strip', '--ext=.png', '64', file]);
  const bytes = readFileSync(file).length;
  console.log(`${file}: ${bytes} bytes`);
  if (bytes > maxBytes) {
    console.error(`${file} has more than ${maxBytes} bytes`);
    process.exitCode = 1;
  }
}
server.close();
