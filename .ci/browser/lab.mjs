// Opens a notebook with the kernel "Go (skep)" in a real JupyterLab in a headless browser and works in it as a user
// does: run cells, look at a picture and at a display that updates, complete a name, stop a loop, meet an error that
// aborts what waits behind it, survive the death of the session, restart. Screenshots go to OUT.
//
//   SKEP=path of the skep binary  JUPYTER=path of jupyter  CHROMIUM=path of the browser  OUT=folder  node lab.mjs [NOTEBOOK]
//
// With NOTEBOOK, that notebook is run cell by cell after the checks and photographed (CELL_MINUTES, default 10, bounds
// each cell).
import { execFileSync, spawn } from 'node:child_process';
import { copyFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import net from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { chromium } from 'playwright-core';

const need = (name) => process.env[name] ?? fail(`set ${name}`);
const fail = (why) => { console.error(why); process.exit(2); };
const skep = path.resolve(need('SKEP')), jupyter = need('JUPYTER'), browserPath = need('CHROMIUM');
const out = path.resolve(process.env.OUT ?? 'shots');
mkdirSync(out, { recursive: true });

const began = Date.now();
const say = (text) => console.log(`${((Date.now() - began) / 1000).toFixed(1).padStart(6)} s  ${text}`);

// The cells of the checks, by name; order is the notebook's.
const cells = {
  hello: 'import "fmt"\nfmt.Println("hello", 6*7)',
  value: 'x := 41\nx + 1',
  plot: 'import ("gonum.org/v1/plot"; "gonum.org/v1/plot/plotter")\np := plot.New()\np.Title.Text = "a parabola"\nxy := plotter.XYs{}\nfor i := range 21 {\n\txy = append(xy, plotter.XY{X: float64(i - 10), Y: float64((i - 10) * (i - 10))})\n}\np.Add(must(plotter.NewLine(xy)))\np',
  update: 'import "time"\nid := must(display.Show(display.HTML("<b>step 0</b>")))\nfor i := range 5 {\n\ttime.Sleep(100 * time.Millisecond)\n\tid.Update(display.HTML(fmt.Sprintf("<b>step %d</b>", i+1)))\n}',
  loop: 'for {\n}',
  alive: 'fmt.Println("alive", x)',
  bad: 'import "strconv"\nn := must(strconv.Atoi("seven"))',
  waits: 'fmt.Println("never shown")',
  dies: 'import ("os"; "syscall")\nsyscall.Kill(os.Getpid(), syscall.SIGKILL)',
  fresh: 'import "fmt"\nfmt.Println("fresh", 2+3)',
};
const names = Object.keys(cells);

const root = mkdtempSync(path.join(tmpdir(), 'skep-lab-'));
const code = (source, i) => ({ cell_type: 'code', id: `cell-${i}`, metadata: {}, execution_count: null, outputs: [], source });
writeFileSync(path.join(root, 'checks.ipynb'), JSON.stringify({
  cells: names.map((n, i) => code(cells[n], i)), nbformat: 4, nbformat_minor: 5,
  metadata: { kernelspec: { name: 'skep', display_name: 'Go (skep)', language: 'go' } },
}));
const extra = process.argv[2];
if (extra) copyFileSync(extra, path.join(root, path.basename(extra)));
execFileSync(skep, ['install', '--prefix', path.join(root, 'prefix')], { stdio: 'inherit' });

const freePort = () => new Promise((done) => {
  const s = net.createServer().listen(0, '127.0.0.1', () => { const { port } = s.address(); s.close(() => done(port)); });
});

async function startLab(port) {
  const lab = spawn(jupyter, ['lab', '--no-browser', '--allow-root', '--ip=127.0.0.1', `--port=${port}`, '--ServerApp.port_retries=0',
    '--IdentityProvider.token=', '--ServerApp.password=', `--ServerApp.root_dir=${root}`, '--LabApp.expose_app_in_browser=True',
    '--LabApp.news_url=None', '--LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate'], {
    stdio: ['ignore', 'pipe', 'pipe'],
    env: {
      ...process.env, JUPYTER_PATH: path.join(root, 'prefix/share/jupyter'), XDG_DATA_HOME: path.join(root, 'data'), JUPYTER_CONFIG_DIR: path.join(root, 'config'),
      JUPYTER_RUNTIME_DIR: path.join(root, 'run'), JUPYTERLAB_SETTINGS_DIR: path.join(root, 'settings'), JUPYTERLAB_WORKSPACES_DIR: path.join(root, 'workspaces'),
    },
  });
  lab.log = '';
  for (const stream of [lab.stdout, lab.stderr]) stream.on('data', (d) => { lab.log += d; });
  for (let tries = 0; ; tries++) {
    const up = await fetch(`http://127.0.0.1:${port}/api/status`).then((r) => r.ok, () => false);
    if (up) return lab;
    if (tries > 600 || lab.exitCode !== null) throw new Error('JupyterLab did not start:\n' + lab.log);
    await new Promise((r) => setTimeout(r, 100));
  }
}

// Sheet is one open notebook.
class Sheet {
  constructor(page) { this.page = page; }
  static async open(page, port, file) {
    await page.goto(`http://127.0.0.1:${port}/lab/tree/${file}?reset`, { waitUntil: 'domcontentloaded' });
    await page.waitForSelector('.jp-Notebook .jp-Cell', { timeout: 90_000 });
    const sheet = new Sheet(page);
    await page.waitForFunction(() => window.jupyterapp?.shell?.currentWidget?.sessionContext?.session?.kernel, null, { timeout: 90_000 });
    await sheet.idle();
    await page.locator('.Toastify button', { hasText: /^No$/ }).click({ timeout: 3000 }).catch(() => {}); // the offer of news, first time only
    return sheet;
  }
  // idle waits until the kernel is connected, known and free: the indicator alone shows idle before the connection stands.
  idle(ms = 90_000) {
    return this.page.waitForFunction(() => {
      const context = window.jupyterapp?.shell?.currentWidget?.sessionContext, kernel = context?.session?.kernel;
      const shown = document.querySelector('.jp-NotebookPanel:not(.lm-mod-hidden) .jp-Notebook-ExecutionIndicator')?.getAttribute('data-status');
      return context?.isReady && kernel?.connectionStatus === 'connected' && kernel.status === 'idle' && kernel.hasPendingInput === false && shown === 'idle';
    }, null, { timeout: ms });
  }
  cell(i) { return this.page.locator('.jp-Notebook .jp-Cell').nth(i); }
  async run(i) {
    await this.cell(i).scrollIntoViewIfNeeded();
    await this.cell(i).locator('.cm-content').first().click();
    await this.page.keyboard.press('Shift+Enter');
  }
  text(i) { return this.cell(i).locator('.jp-OutputArea').first().innerText({ timeout: 2000 }).then((t) => t.trim(), () => ''); }
  async shows(i, pattern, ms = 60_000) {
    await this.page.waitForFunction(([at, source]) => {
      const area = document.querySelectorAll('.jp-Notebook .jp-Cell')[at]?.querySelector('.jp-OutputArea');
      return new RegExp(source).test(area?.innerText ?? '');
    }, [i, pattern.source], { timeout: ms });
    return this.text(i);
  }
  prompt(i) { return this.cell(i).locator('.jp-InputPrompt').innerText(); }
  press(button) { return this.page.locator(`.jp-NotebookPanel:not(.lm-mod-hidden) .jp-NotebookPanel-toolbar [data-jp-item-name="${button}"]`).first().click(); }
  photo(name) { return this.page.screenshot({ path: path.join(out, `${name}.png`) }); }
}

const check = (ok, what) => { if (!ok) throw new Error('not so: ' + what); say(what); };

async function checks(sheet) {
  const at = (name) => names.indexOf(name);
  await sheet.run(at('hello'));
  check(/hello 42/.test(await sheet.shows(at('hello'), /hello 42/)), 'a cell prints');
  await sheet.run(at('value'));
  check(/^(\[2\]:\s*)?42$/.test(await sheet.shows(at('value'), /42/)), 'the last expression is the result');
  await sheet.run(at('plot'));
  await sheet.cell(at('plot')).locator('.jp-OutputArea img, .jp-OutputArea svg').first().waitFor({ timeout: 30_000 });
  say('a gonum plot shows as a picture');
  await sheet.run(at('update'));
  check((await sheet.shows(at('update'), /step 5/)) === 'step 5', 'a display updates in place');
  await sheet.idle();
  await sheet.photo('1-outputs');

  await sheet.run(at('loop'));
  await new Promise((r) => setTimeout(r, 1000));
  const stopped = Date.now();
  await sheet.press('interrupt');
  await sheet.shows(at('loop'), /interrupted/, 15_000);
  await sheet.idle(15_000);
  say(`the stop button ends a loop (${Date.now() - stopped} ms)`);
  await sheet.run(at('alive'));
  check(/alive 41/.test(await sheet.shows(at('alive'), /alive/)), 'variables live on after it');

  await sheet.run(at('bad'));
  await sheet.shows(at('bad'), /invalid syntax/);
  await sheet.idle();
  check(/In\[\d+\]:2/.test(await sheet.text(at('bad'))), 'an error names its line');
  check((await sheet.text(at('waits'))) === '', 'a cell that was not run shows nothing');
  await sheet.photo('2-errors');

  await sheet.run(at('dies'));
  check(/new session has been started/.test(await sheet.shows(at('dies'), /new session/)), 'the death of the session is told');
  await sheet.idle();
  await sheet.run(at('fresh'));
  await sheet.shows(at('fresh'), /fresh 5/);
  say('the next cell runs in a new session');
  await sheet.photo('3-session-died');

  await sheet.press('restart');
  await sheet.page.locator('.jp-Dialog button.jp-mod-accept').click({ timeout: 10_000 });
  await sheet.page.waitForSelector('.jp-Dialog', { state: 'detached', timeout: 10_000 });
  await new Promise((r) => setTimeout(r, 1000));
  await sheet.idle();
  await sheet.run(at('fresh'));
  await sheet.shows(at('fresh'), /fresh 5/);
  await sheet.idle();
  check((await sheet.prompt(at('fresh'))).startsWith('[1]'), 'the kernel restarts and counts from 1');
  await sheet.photo('4-restarted');
}

// walk runs another notebook cell by cell.
async function walk(sheet, file) {
  const source = JSON.parse(readFileSync(file, 'utf8')).cells;
  const limit = Number(process.env.CELL_MINUTES ?? 10) * 60_000;
  for (const [i, cell] of source.entries()) {
    if (cell.cell_type !== 'code') continue;
    await sheet.run(i);
    await new Promise((r) => setTimeout(r, 300));
    await sheet.idle(limit);
    const failed = await sheet.cell(i).locator('.jp-OutputArea [data-mime-type="application/vnd.jupyter.stderr"], .jp-OutputArea [data-mime-type="application/vnd.jupyter.error"]').count();
    const text = (await sheet.text(i)).replace(/\s+/g, ' ').slice(0, 100);
    say(`cell ${i}: ${text}`);
    await sheet.cell(i).scrollIntoViewIfNeeded();
    await sheet.photo(`cell-${String(i).padStart(2, '0')}`);
    if (failed && /error|panic/.test(text)) throw new Error(`cell ${i} failed: ${text}`);
  }
}

let browser, lab, ok = false;
try {
  const port = await freePort();
  lab = await startLab(port);
  say('JupyterLab is up');
  browser = await chromium.launch({ executablePath: browserPath, headless: true, args: ['--no-sandbox', '--disable-dev-shm-usage', '--disable-gpu'] });
  const page = await browser.newPage({ viewport: { width: 1300, height: 950 } });
  page.on('pageerror', (e) => say('page error: ' + String(e).slice(0, 200)));
  const sheet = await Sheet.open(page, port, 'checks.ipynb');
  say('the notebook is open and its kernel idle');
  await checks(sheet);
  if (extra) await walk(await Sheet.open(page, port, path.basename(extra)), extra);
  ok = true;
} catch (e) {
  console.error(e.message);
  if (lab) writeFileSync(path.join(out, 'jupyterlab.log'), lab.log);
  await browser?.contexts()[0]?.pages()[0]?.screenshot({ path: path.join(out, 'failed.png') }).catch(() => {});
} finally {
  await browser?.close();
  if (lab) {
    lab.kill('SIGTERM');
    await Promise.race([new Promise((r) => lab.on('exit', r)), new Promise((r) => setTimeout(r, 8000))]);
  }
  rmSync(root, { recursive: true, force: true });
}
say(ok ? 'all checks passed' : 'FAILED; screenshots in ' + out);
process.exit(ok ? 0 : 1);
