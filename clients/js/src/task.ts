/* The public description of a task for devices, signed by its author. */

import { ed25519 } from '@noble/curves/ed25519.js';
import { sha256 } from '@noble/hashes/sha2.js';

import { concat, unhex, utf8 } from './bytes.js';
import { CIPHERTEXT_BYTES, type Encryption, EncryptionKey } from './elgamal.js';
import { InputError, PlanError } from './errors.js';
import { Fraction } from './fraction.js';
import { CountNonZero, Histogram, type Kind, Mean } from './kinds.js';
import { checkPromise, type Guarantee, keeps } from './promise.js';
import { SHARED_BYTES, Sharing, type TwoServers } from './sharing.js';

/** Version of the task, of states and of reports; the package's major version is the same. */
export const FORMAT_VERSION = 1;

const MOST_BYTES = 1 << 16;
const MOST_TICKS = 2 ** 31;
const MOST_EVENTS = 1_000;
const MOST_DEVICES = 10_000_000;
const ID_BYTES = 16;
const KEY_BYTES = 33;
const SIGNATURE_BYTES = 64;
const DOMAIN = utf8('panprivacy task\n');
const CONTEXT = utf8('dap-17');

type Fields = Record<string, unknown>;

/** The work of each device, its duration, and the guarantee for the device; all public. */
export class Task {
  /** SHA-256 of the canonical JSON: states and reports name their task by it. */
  readonly digest: Uint8Array;
  #encryption: Encryption | null = null;

  private constructor(
    readonly id: string,
    readonly kind: Kind,
    readonly promise: Guarantee,
    readonly horizon: number,
    readonly key: string | TwoServers,
  ) {
    this.digest = sha256(utf8(this.canonical()));
  }

  /**
   * Return a task from its file.
   *
   * @param file the file.
   * @param signer the Ed25519 key, 32 bytes, of whom the device takes tasks from. It comes with the
   *   program, not with the task.
   * @throws InputError if it is no task, has unknown fields or values out of range, breaks its
   *   promise, or somebody else signed it. The message shows nothing of it.
   */
  static read(file: Uint8Array, signer: Uint8Array): Task {
    const { task, signature } = fieldsOf(decoded(file), ['task', 'signature']);
    const plain = utf8(sorted(task, MOST_DEPTH));
    const sign = unhex(hexadecimal(SIGNATURE_BYTES, 'signature', signature));
    if (!isSigned(sign, concat(DOMAIN, plain), signer)) {
      throw new InputError('the task is not signed by the one whom this program trusts');
    }
    try {
      return Task.#of(task);
    } catch (error) {
      throw error instanceof PlanError ? new InputError(`this is no task: ${error.message}`) : error;
    }
  }

  static #of(value: unknown): Task {
    const fields = fieldsOf(value, ['version', 'id', 'kind', 'promise', 'horizon', 'key']);
    if (fields.version !== FORMAT_VERSION) {
      throw new PlanError(`it has another version, and this program knows ${FORMAT_VERSION}`);
    }
    const key = fields.key;
    const kind = kindOf(fields.kind);
    const promise = promiseOf(fields.promise);
    const to = typeof key === 'string' ? hexadecimal(KEY_BYTES, 'key', key) : serversOf(key);
    if (typeof to !== 'string') checkServers(to, kind, promise);
    const horizon = positive(MOST_TICKS, 'horizon', fields.horizon);
    const task = new Task(hexadecimal(ID_BYTES, 'id', fields.id), kind, promise, horizon, to);
    if (!keeps(kind, promise)) {
      throw new PlanError('the noise of the task does not keep its promise');
    }
    return task;
  }

  /** Return the task as JSON with sorted names and no spaces: the same text for each task. */
  canonical(): string {
    const { epsilon, delta, devices } = this.promise;
    return sorted({
      horizon: this.horizon,
      id: this.id,
      key: this.key,
      kind: this.kind.document(),
      promise: { delta: String(delta), devices, epsilon: String(epsilon) },
      version: FORMAT_VERSION,
    });
  }

  /** Context that proofs of shares are bound to. */
  get context(): Uint8Array {
    return concat(CONTEXT, this.digest);
  }

  /** Number of bytes of one encrypted value in a row. */
  get entryBytes(): number {
    return typeof this.key === 'string' ? CIPHERTEXT_BYTES : SHARED_BYTES;
  }

  /** Encryption of the devices; throws `InputError` if a key is no point. */
  get encryption(): Encryption {
    this.#encryption ??=
      typeof this.key === 'string'
        ? new EncryptionKey(unhex(this.key))
        : new Sharing(this.context, this.key);
    return this.#encryption;
  }
}

function kindOf(value: unknown): Kind {
  switch ((value as Fields | null)?.kind) {
    case 'count-nonzero': {
      const fields = fieldsOf(value, ['kind', 'epsilon_0']);
      return new CountNonZero(Fraction.read(fields.epsilon_0));
    }
    case 'histogram': {
      const fields = fieldsOf(value, ['kind', 'epsilon_0', 'most']);
      const most = positive(MOST_EVENTS, 'most', fields.most);
      return new Histogram(most, Fraction.read(fields.epsilon_0));
    }
    case 'mean': {
      const fields = fieldsOf(value, ['kind', 'most', 'variance']);
      const most = positive(MOST_EVENTS, 'most', fields.most);
      return new Mean(most, Fraction.read(fields.variance));
    }
  }
  throw new PlanError('its kind is not one that this program knows');
}

function promiseOf(value: unknown): Guarantee {
  const fields = fieldsOf({ delta: '0', devices: 1, ...(value as Fields) }, [
    'epsilon',
    'delta',
    'devices',
  ]);
  const promise = {
    epsilon: Fraction.read(fields.epsilon),
    delta: Fraction.read(fields.delta),
    devices: positive(MOST_DEVICES, 'devices', fields.devices),
  };
  checkPromise(promise);
  return promise;
}

function serversOf(value: unknown): TwoServers {
  const fields = fieldsOf(value, ['leader', 'helper', 'collusion', 'batch']);
  const { collusion } = fields;
  if (collusion !== 'none' && collusion !== 'one-server') {
    throw new PlanError('collusion must be one of none, one-server');
  }
  return {
    leader: hexadecimal(KEY_BYTES, 'leader', fields.leader),
    helper: hexadecimal(KEY_BYTES, 'helper', fields.helper),
    collusion,
    batch: positive(MOST_DEVICES, 'batch', fields.batch),
  };
}

/** Throw `PlanError` unless two servers can count this, and keep the promise. */
function checkServers(servers: TwoServers, kind: Kind, promise: Guarantee): void {
  if (servers.leader === servers.helper) {
    throw new PlanError('both servers have the same key: each has to make its own');
  }
  if (kind instanceof Mean) {
    throw new PlanError('two servers cannot make a mean: ask one server, or for a histogram');
  }
  if (servers.batch < promise.devices) {
    throw new PlanError('batch must be at least the devices of the promise');
  }
}

// Values of a document

function decoded(file: Uint8Array): unknown {
  if (file.length > MOST_BYTES) {
    throw new InputError(`this is no task: it has more than ${MOST_BYTES} bytes`);
  }
  try {
    const text = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(file);
    const document: unknown = JSON.parse(text);
    const bare = text.replace(STRINGS, '""');
    if ((bare.match(NUMBERS) ?? []).every((each) => WHOLE.test(each))) return document;
  } catch {
    throw new InputError('this is no task: it is no JSON');
  }
  throw new InputError('this is no task: a number is not written as a whole one, such as 30');
}

const STRINGS = /"(?:[^"\\]|\\.)*"/g;
const NUMBERS = /-?[0-9][0-9.eE+-]*/g;
/** The one way of writing each number: what is signed is what stands in the file. */
const WHOLE = /^(?:0|[1-9][0-9]*)$/;
/** Objects within objects: the file, the task, its kind. */
const MOST_DEPTH = 4;

/** Return a document that has these fields, and no others. */
function fieldsOf(value: unknown, names: readonly string[]): Fields {
  const isDocument = typeof value === 'object' && value !== null && !Array.isArray(value);
  const found = isDocument ? Object.keys(value) : [];
  if (!isDocument || found.length !== names.length || names.some((name) => !found.includes(name))) {
    throw new InputError('this is no task: a field is missing, or one is not known');
  }
  return value as Fields;
}

function hexadecimal(size: number, name: string, value: unknown): string {
  if (typeof value !== 'string' || value.length !== 2 * size || !/^[0-9a-f]*$/.test(value)) {
    throw new InputError(
      `this is no task: ${name} must be ${size} bytes in lower-case hexadecimal digits`,
    );
  }
  return value;
}

function positive(most: number, name: string, value: unknown): number {
  if (typeof value !== 'number' || !Number.isInteger(value) || value < 1 || value > most) {
    throw new PlanError(`${name} must be a whole number of 1 to ${most}`);
  }
  return value;
}

/** Return JSON with sorted names and no spaces. */
function sorted(value: unknown, depth = MOST_DEPTH): string {
  if (typeof value !== 'object' || value === null) return JSON.stringify(value);
  if (depth === 0) throw new InputError('this is no task: it has too many brackets');
  if (Array.isArray(value)) return `[${value.map((each) => sorted(each, depth - 1)).join(',')}]`;
  const names = Object.keys(value).sort();
  const pairs = names.map(
    (name) => `${JSON.stringify(name)}:${sorted((value as Fields)[name], depth - 1)}`,
  );
  return `{${pairs.join(',')}}`;
}

function isSigned(signature: Uint8Array, message: Uint8Array, signer: Uint8Array): boolean {
  try {
    return ed25519.verify(signature, message, signer, { zip215: false });
  } catch {
    return false;
  }
}
