/* The state and the report of a device: a front of fixed size, and a row of ciphertexts. */

import { concat, equal, littleEndian, littleNumber, utf8 } from './bytes.js';
import { InputError } from './errors.js';
import { FORMAT_VERSION, type Task } from './task.js';

export const REPORT_ID_BYTES = 16;

const MAGIC = { state: utf8('PPDS'), report: utf8('PPDR') };
const DIGEST_BYTES = 32;
const FRONT_BYTES = 4 + 1 + DIGEST_BYTES;
const STATE_BYTES = FRONT_BYTES + 1 + 8 + REPORT_ID_BYTES;

/** The state of a device. */
export interface DeviceState {
  /** Digest of its task. */
  readonly task: Uint8Array;
  /** Whether the report is made; then `row` is that of the report. */
  readonly done: boolean;
  /** Number of completed ticks; public. */
  readonly tick: number;
  /** Name of the report, drawn before the first tick. */
  readonly name: Uint8Array;
  /** The ciphertexts. */
  readonly row: Uint8Array;
}

/** Return a state as it is stored. */
export function stateBytes({ task, done, tick, name, row }: DeviceState): Uint8Array {
  const head = [MAGIC.state, Uint8Array.of(FORMAT_VERSION), task, Uint8Array.of(Number(done))];
  return concat(...head, littleEndian(tick, 8), name, row);
}

/** Return a state from its stored bytes; throw `InputError` if it is none, or of another version. */
export function readState(data: Uint8Array): DeviceState {
  const task = frontOf(data, 'state');
  const done = data[FRONT_BYTES];
  if (data.length < STATE_BYTES || done! > 1) throw new InputError(none('state'));
  const tick = littleNumber(data.slice(FRONT_BYTES + 1, FRONT_BYTES + 9));
  if (tick > BigInt(Number.MAX_SAFE_INTEGER)) throw new InputError(none('state'));
  const name = data.slice(STATE_BYTES - REPORT_ID_BYTES, STATE_BYTES);
  return { task, done: done === 1, tick: Number(tick), name, row: data.slice(STATE_BYTES) };
}

/** A report, read. */
export interface Report {
  readonly name: Uint8Array;
  readonly row: Uint8Array;
}

/** Return a report as it is sent. */
export function reportBytes({ name, row }: Report, task: Task): Uint8Array {
  return concat(MAGIC.report, Uint8Array.of(FORMAT_VERSION), task.digest, name, row);
}

/** Return a report from its bytes; throw `InputError` if it is none of this task. */
export function readReport(data: Uint8Array, task: Task): Report {
  if (!equal(frontOf(data, 'report'), task.digest)) {
    throw new InputError('the report is for another task');
  }
  const rest = data.slice(FRONT_BYTES);
  if (rest.length !== REPORT_ID_BYTES + task.kind.answers * task.entryBytes) {
    throw new InputError('the report is too long or too short for its task: it is damaged');
  }
  return { name: rest.slice(0, REPORT_ID_BYTES), row: rest.slice(REPORT_ID_BYTES) };
}

const none = (what: string) => `this is no ${what} of a device: it is damaged, or something else`;

/** Return the digest of the task that a message names. */
function frontOf(data: Uint8Array, what: 'state' | 'report'): Uint8Array {
  if (data.length < FRONT_BYTES || !equal(data.slice(0, 4), MAGIC[what])) {
    throw new InputError(none(what));
  }
  if (data[4] !== FORMAT_VERSION) {
    throw new InputError(`the ${what} has another version, and this program knows ${FORMAT_VERSION}`);
  }
  return data.slice(5, FRONT_BYTES);
}
