import assert from 'node:assert/strict';
import { test } from 'node:test';

import { Device, InputError, MemoryStorage, reportsPath, send, SendError, upload } from '../dist/index.js';
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

test('what the server does not take is an error, which says whether to send it again', async () => {
  const [one, two] = [taskOf(), taskOf({ key: servers() })];
  const answered = async (task, status, body = null) => {
    const report = await reported(task);
    return send(report, task, server, async () => new Response(body, { status })).catch((error) => error);
  };
  for (const [status, again] of [
    [200, null], [201, null], [204, false], [202, false], [400, false], [404, false], [409, false],
    [413, false], [401, true], [408, true], [429, true], [500, true], [503, true],
  ]) {
    const error = await answered(one, status);
    if (again === null) assert.equal(error, undefined);
    else assert.deepEqual([error instanceof SendError, error.status, error.again], [true, status, again]);
  }
  const named = await answered(two, 200, 'a report error');
  assert.deepEqual([named instanceof SendError, named.again], [true, false]);
});

test('a server may be below a path', async () => {
  const task = taskOf();
  const asked = [];
  await send(await reported(task), task, { ...server, url: 'https://a.example/collector/' }, async (url) => {
    asked.push(url);
    return new Response(null, { status: 200 });
  });
  assert.deepEqual(asked, ['https://a.example/collector/v1/reports']);
});
