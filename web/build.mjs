// Builds the script and the style sheet of the report into crates/report/assets, or checks that they are up to date
// (--check). The first line of each has a digest of the sources, so a check does not need Node.

import { createHash } from 'node:crypto';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';

import { build } from 'esbuild';

const here = dirname(fileURLToPath(import.meta.url));
const assets = join(here, '..', 'crates', 'report', 'assets');

function files(directory) {
  return readdirSync(directory, { withFileTypes: true })
    .flatMap((entry) => (entry.isDirectory() ? files(join(directory, entry.name)) : [join(directory, entry.name)]))
;
}

/** Digest of file names and contents, in order; crates/report/tests/suite/assets.rs computes the same. */
function digest() {
  const hash = createHash('sha256');
  const names = [...files(join(here, 'src')), join(here, 'package-lock.json'), join(here, 'build.mjs')]
    .map((file) => relative(here, file).replaceAll('\\', '/'))
    .sort();
  for (const name of names) {
    hash.update(`${name}\n`);
    hash.update(readFileSync(join(here, name)));
  }
  return hash.digest('hex');
}

const { outputFiles } = await build({
  entryPoints: [join(here, 'src', 'main.ts')],
  outdir: assets,
  entryNames: 'report',
  bundle: true,
  minify: true,
  write: false,
  format: 'iife',
  target: ['chrome103', 'firefox113', 'safari16.4'],
  charset: 'utf8',
  legalComments: 'inline',
});

const sources = digest();
const head = `/* busbound's report, built from web/ (sources ${sources}) */`;
const built = outputFiles.map(({ path, text }) => ({ path, whole: `${head}\n${text}` }));
// The page's content security policy allows only this script.
const script = built.find(({ path }) => path.endsWith('.js'));
const scriptDigest = createHash('sha256').update(script.whole).digest('base64');
built.push({ path: `${script.path}.sha256`, whole: `sha256-${scriptDigest}\n` });
let isSame = true;
for (const { path, whole } of built) {
  if (process.argv.includes('--check')) {
    if (readFileSync(path, 'utf8') !== whole) {
      console.error(`${relative(join(here, '..'), path)} is out of date: run cargo xtask web`);
      isSame = false;
    }
  } else {
    writeFileSync(path, whole);
    console.log(`${relative(join(here, '..'), path)}: ${whole.length} bytes`);
  }
}
process.exitCode = isSame ? 0 : 1;
