/* Sends a report to a collector, or to the leader of two servers (draft-ietf-ppm-dap-17). */

import { bigEndian, concat } from './bytes.js';
import { PlanError } from './errors.js';
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
  /** Such as `https://collector.example`: the collector, or the leader. */
  readonly url: string;
  /** The token that may send. */
  readonly token: string;
}

/**
 * Send a report; it is on the server's disk when this resolves. Sent again, it counts once.
 *
 * @throws PlanError if the server does not take it; try again later. The message has its status.
 */
export async function send(report: Uint8Array, task: Task, server: Server, ask = fetch): Promise<void> {
  const two = typeof task.key !== 'string';
  const response = await ask(new URL(reportsPath(task), server.url), {
    method: 'POST',
    headers: {
      Authorization: `Bearer ${server.token}`,
      'Content-Type': two ? UPLOAD : 'application/octet-stream',
    },
    body: (two ? upload(report, task) : report) as BodyInit,
  });
  const refused = two && (await response.arrayBuffer()).byteLength > 0;
  if (!response.ok || refused) {
    throw new PlanError(`the server does not take the report: status ${response.status}`);
  }
}
