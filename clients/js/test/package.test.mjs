import assert from 'node:assert/strict';
import { readdir, readFile } from 'node:fs/promises';
import { test } from 'node:test';
import { gzipSync } from 'node:zlib';

import { build } from 'esbuild';

import { FORMAT_VERSION } from '../dist/index.js';

const here = (name) => new URL(`../${name}`, import.meta.url);
const described = JSON.parse(await readFile(here('package.json'), 'utf8'));

test('the bundle is below 40 kB compressed', async () => {
  const { outputFiles } = await build({
    entryPoints: [here('dist/index.js').pathname],
    bundle: true,
    minify: true,
    format: 'esm',
    platform: 'browser',
    write: false,
  });
  const size = gzipSync(outputFiles[0].contents, { level: 9 }).length;
  assert.ok(size < 40_000, `${size} bytes`);
});

test('the major version is that of the format', () => {
  assert.equal(Number(described.version.split('.')[0]), FORMAT_VERSION);
});

test('a browser is given two libraries, and no other', () => {
  assert.deepEqual(Object.keys(described.dependencies), ['@noble/curves', '@noble/hashes']);
});

test('the lock file names no host', async () => {
  assert.doesNotMatch(await readFile(here('package-lock.json'), 'utf8'), /"resolved"/);
});

test('nothing logs, and nothing draws but the coins', async () => {
  for (const name of await readdir(here('src/'))) {
    const text = await readFile(here(`src/${name}`), 'utf8');
    assert.doesNotMatch(text, /console\.|Math\.random/, name);
    if (name !== 'coins.ts') assert.doesNotMatch(text, /getRandomValues/, name);
  }
});
