/* Sends a report to a collector, or to the leader of two servers (draft-ietf-ppm-dap-17). */

import { bigEndian, concat } from './bytes.js';
import { SendError } from './errors.js';
import { POINT_BYTES } from './group.js';
import { readReport } from './messages.js';
import { split } from './sharing.js';
import type { Task } from './task.js';

const enum Role {
  Leader = 2,
  Helper = 3,
}

const UPLOAD = 'application/ppm-dap;message=upload-req';
const TIME_BYTES = 8;
const [TAKEN, NEW, SERVER_ERROR] = [200, 201, 500];
/** A token may be changed, a body may be slow, and a proxy may be busy. */
const LATER = new Set([401, 403, 408, 429]);

/** Return the body of an upload to a leader, from what `Device.report` gave. */
export function upload(report: Uint8Array, task: Task): Uint8Array {
  const { name, row } = readReport(report, task);
  const [leader, helper] = split(row);
  const [noExtensions, noPublicShare] = [bigEndian(0, 2), bigEndian(0, 4)];
  return concat(
    concat(name, bigEndian(0, TIME_BYTES), noExtensions, noPublicShare),
    sealed(leader, Role.Leader),
    sealed(helper, Role.Helper),
  );
}

/** Return a row for one server, in the place of an HPKE ciphertext. */
function sealed(row: Uint8Array, role: Role): Uint8Array {
  const [enc, payload] = [row.slice(0, POINT_BYTES), row.slice(POINT_BYTES)];
  const sizes = [bigEndian(enc.length, 2), bigEndian(payload.length, 4)] as const;
  return concat(Uint8Array.of(role), sizes[0], enc, sizes[1], payload);
}

/** Return the path to which reports of a task are sent. */
export function reportsPath(task: Task): string {
  if (typeof task.key === 'string') return '/v1/reports';
  const name = btoa(String.fromCharCode(...task.digest));
  return `/tasks/${name.replace(/\+/g, '-').replace(/\//g, '_').replace(/=+$/, '')}/reports`;
}

/** Where reports go. */
export interface Server {
  /** Such as `https://collector.example`: the collector, or the leader; it may be below a path. */
  readonly url: string;
  /** The token that may send. */
  readonly token: string;
}

/**
 * Send a report; it is on the server's disk when this resolves. Sent again, it counts once.
 *
 * @throws SendError if the server does not take it: `again` says whether it may later. What `ask`
 *   rejects with, such as a network that is away, is passed on: send it again then, too.
 */
export async function send(report: Uint8Array, task: Task, server: Server, ask = fetch): Promise<void> {
  const two = typeof task.key !== 'string';
  const response = await ask(server.url.replace(/\/+$/, '') + reportsPath(task), {
    method: 'POST',
    headers: {
      Authorization: `Bearer ${server.token}`,
      'Content-Type': two ? UPLOAD : 'application/octet-stream',
    },
    body: (two ? upload(report, task) : report) as BodyInit,
  });
  const { status } = response;
  const refused = two && status === TAKEN && (await response.arrayBuffer()).byteLength > 0;
  if (refused || (status !== TAKEN && status !== NEW)) {
    throw new SendError(status, !refused && (LATER.has(status) || status >= SERVER_ERROR));
  }
}
