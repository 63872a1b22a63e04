import assert from 'node:assert/strict';
import { test } from 'node:test';

import { Device, InputError, MemoryStorage, PlanError, reportsPath, send, upload } from '../dist/index.js';
import { servers, taskOf } from './tasks.mjs';

const reported = async (task) => {
  const device = await Device.open(task, new MemoryStorage());
  for (let i = 0; i < 3; i++) await device.observe(false);
  return device.report();
};
const server = { url: 'https://collector.example', token: 'a token' };

test('a report goes to the collector as it is', async () => {
  const task = taskOf();
  const report = await reported(task);
  const asked = [];
  await send(report, task, server, async (...words) => {
    asked.push(words);
    return new Response(null, { status: 201 });
  });
  const [[url, { method, headers, body }]] = asked;
  assert.equal(String(url), 'https://collector.example/v1/reports');
  assert.equal(method, 'POST');
  assert.equal(headers.Authorization, 'Bearer a token');
  assert.deepEqual(body, report);
});

test('a report for two servers goes to the leader as an upload', async () => {
  const task = taskOf({ key: servers() });
  const report = await reported(task);
  const body = upload(report, task);
  assert.equal(body.length, 16 + 8 + 2 + 4 + 2 * (1 + 2 + 4 + 132));
  assert.match(reportsPath(task), /^\/tasks\/[A-Za-z0-9_-]{43}\/reports$/);
  assert.throws(() => upload(report, taskOf({ key: servers() })), InputError);
  await send(report, task, server, async () => new Response(''));
});

test('what the server does not take is an error', async () => {
  const task = taskOf({ key: servers() });
  const report = await reported(task);
  for (const answer of [new Response('', { status: 503 }), new Response('a report error')]) {
    await assert.rejects(send(report, task, server, async () => answer), PlanError);
  }
});
