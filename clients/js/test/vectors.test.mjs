// Replays tests/vectors/device, which docs/device-format.md describes.

import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { test } from 'node:test';

import { Device, InputError, MemoryStorage, Task, upload } from '../dist/index.js';
import { embed } from '../dist/embedding.js';
import { parse } from '../dist/group.js';
import { readReport } from '../dist/messages.js';

const folder = new URL('../../../tests/vectors/device/', import.meta.url);
const bytes = (text) => new Uint8Array(Buffer.from(text, 'hex'));
const text = (data) => Buffer.from(data).toString('hex');
const read = (name) => JSON.parse(readFileSync(new URL(name, folder)));
const others = ['points.json', 'tasks.json'];
const lives = readdirSync(folder).filter((name) => name.endsWith('.json') && !others.includes(name));

// Coins that give what a step lists, and check that the same is asked for.
class Listed {
  constructor() {
    this.draws = [];
  }

  next(key) {
    const draw = this.draws.shift() ?? {};
    assert.ok(key in draw, `${key} is asked for, and ${Object.keys(draw)} comes`);
    return draw;
  }

  secret(size) {
    const found = bytes(this.next('secret').secret);
    assert.equal(found.length, size);
    return found;
  }

  key(size) {
    const found = bytes(this.next('id').id);
    assert.equal(found.length, size);
    return found;
  }

  bernoulli(probability, size) {
    const draw = this.next('bernoulli');
    assert.equal(String(probability), draw.bernoulli);
    assert.equal(draw.bits.length, size);
    return Uint8Array.from(draw.bits);
  }

  discreteGaussian(variance) {
    const draw = this.next('discrete_gaussian');
    assert.equal(String(variance), draw.discrete_gaussian);
    return BigInt(draw.numbers[0]);
  }
}

for (const name of lives) {
  const vector = read(name);
  const task = () => Task.read(Buffer.from(vector.task), bytes(vector.signer));

  test(`${name}: each step writes the bytes of the vector`, async () => {
    assert.equal(task().canonical(), vector.canonical);
    assert.equal(text(task().digest), vector.digest);
    const [coins, storage] = [new Listed(), new MemoryStorage()];
    const steps = {
      begin: () => Device.open(task(), storage, coins),
      observe: async ({ event }) => (await Device.open(task(), storage, coins)).observe(event),
      report: async ({ report, upload: uploaded }) => {
        const found = await (await Device.open(task(), storage, coins)).report();
        assert.equal(text(found), report);
        if (uploaded) assert.equal(text(upload(found, task())), uploaded);
      },
    };
    for (const step of vector.steps) {
      coins.draws = structuredClone(step.draws);
      await steps[step.do](step);
      assert.equal(text(await storage.read()), step.state);
      assert.deepEqual(coins.draws, []);
    }
    assert.ok(vector.steps.length > 2);
  });

  test(`${name}: what is no report is refused`, () => {
    const wrong = vector.refused_reports.filter(({ why }) => why !== 'point'); // the servers look at those
    assert.ok(wrong.length > 3);
    for (const { why, report } of wrong) {
      assert.throws(() => readReport(bytes(report), task()), InputError, why);
    }
  });

  test(`${name}: what is no state is refused`, async () => {
    for (const { why, state } of vector.refused_states) {
      const storage = new MemoryStorage();
      await storage.replace(null, bytes(state));
      await assert.rejects(Device.open(task(), storage), InputError, why);
      assert.equal(text(await storage.read()), state);
    }
  });
}

test('all kinds and both numbers of servers have a vector', () => {
  assert.ok(lives.length >= 8, String(lives));
});

test('points are those of the vectors', () => {
  const { embedded, refused } = read('points.json');
  const full = embedded.filter(({ payload }) => payload.length === 62);
  assert.ok(full.length > 1 && refused.length > 1);
  for (const { payload, point } of full) assert.equal(text(embed(bytes(payload))), point);
  for (const { why, point } of refused) assert.throws(() => parse(bytes(point)), InputError, why);
});

test('tasks are read and refused as in the vectors', () => {
  const { signer, good, refused } = read('tasks.json');
  for (const { file, canonical, digest } of good) {
    const task = Task.read(Buffer.from(file), bytes(signer));
    if (canonical) assert.equal(task.canonical(), canonical);
    if (digest) assert.equal(text(task.digest), digest);
  }
  assert.ok(refused.length > 5);
  for (const { why, file } of refused) {
    assert.throws(() => Task.read(Buffer.from(file), bytes(signer)), InputError, why);
  }
});
