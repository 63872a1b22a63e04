/*
 * The statistics over devices. A device holds a row of `width` encrypted values. None of the steps
 * branches on what it observed, and what they return is re-randomised before anybody sees it.
 */

import { concat, entries } from './bytes.js';
import type { Coins } from './coins.js';
import type { Encryption, EncryptionKey } from './elgamal.js';
import { PlanError } from './errors.js';
import { randomisedResponse } from './exact.js';
import { Fraction } from './fraction.js';

/** A statistic over devices, and the noise that each of them draws. */
export interface Kind {
  /** Number of encrypted values on a device. */
  readonly width: number;
  /** Number of encrypted values in a report. */
  readonly answers: number;
  /** Return the row of a device that has observed nothing. */
  initial(encryption: Encryption, coins: Coins): Uint8Array;
  /** Return the row after one more event. */
  afterEvent(row: Uint8Array, encryption: Encryption, coins: Coins): Uint8Array;
  /** Return the row of the report, with the noise in it. */
  reported(row: Uint8Array, encryption: Encryption, coins: Coins): Uint8Array;
  /** Return what a task says of it, for its canonical form. */
  document(): Record<string, unknown>;
}

/** The law of the report of a bit: the probabilities that a 1, and that a 0, is reported as 1. */
export class Reporting {
  constructor(
    readonly present: Fraction,
    readonly absent: Fraction,
  ) {}

  /** Report encrypted bits: as many coins and encryptions whatever they are. */
  encrypted(row: Uint8Array, encryption: Encryption, coins: Coins): Uint8Array {
    const bits = entries(row, encryption.entryBytes);
    const keep = this.present.minus(this.absent);
    const kept = coins.bernoulli(keep, bits.length);
    const one = this.absent.over(new Fraction(1).minus(keep));
    const fresh = coins.bernoulli(one, bits.length);
    try {
      const drawn = entries(encryption.encrypt([...fresh], coins), encryption.entryBytes);
      const chosen = bits.map((bit, i) => [drawn[i]!, bit][kept[i]!]!);
      return encryption.rerandomise(concat(...chosen), coins);
    } finally {
      kept.fill(0);
      fresh.fill(0);
    }
  }
}

const ONE = new Fraction(1);

/** Number of devices with at least one event. */
export class CountNonZero implements Kind {
  readonly width = 1;
  readonly answers = 1;
  readonly reporting: Reporting;

  constructor(readonly epsilon0: Fraction) {
    const present = randomisedResponse(epsilon0);
    this.reporting = new Reporting(present, ONE.minus(present));
  }

  initial(encryption: Encryption, coins: Coins): Uint8Array {
    return encryption.encrypt([0], coins);
  }

  afterEvent(_row: Uint8Array, encryption: Encryption, coins: Coins): Uint8Array {
    return encryption.encrypt([1], coins);
  }

  reported(row: Uint8Array, encryption: Encryption, coins: Coins): Uint8Array {
    return this.reporting.encrypted(row, encryption, coins);
  }

  document() {
    return { epsilon_0: String(this.epsilon0), kind: 'count-nonzero' };
  }
}

/** Number of devices with 0, 1, ... events, up to `most` or more; `DeviceHistogram` in Python. */
export class Histogram implements Kind {
  readonly width: number;
  readonly answers: number;
  readonly reporting: Reporting;

  constructor(
    readonly most: number,
    readonly epsilon0: Fraction,
  ) {
    this.answers = most + 1;
    this.width = 2 * this.answers;
    this.reporting = new Reporting(new Fraction(1, 2), ONE.minus(randomisedResponse(epsilon0)));
  }

  initial(encryption: Encryption, coins: Coins): Uint8Array {
    const half = Array.from({ length: this.answers }, (_, i) => (i === 0 ? 1 : 0));
    return encryption.encrypt([...half, ...half], coins);
  }

  afterEvent(row: Uint8Array, encryption: Encryption, coins: Coins): Uint8Array {
    const [exactly, atLeast] = this.#halves(row, encryption);
    const [zero, one] = entries(encryption.encrypt([0, 1], coins), encryption.entryBytes);
    return concat(zero!, ...exactly.slice(0, -1), one!, ...atLeast.slice(0, -1));
  }

  reported(row: Uint8Array, encryption: Encryption, coins: Coins): Uint8Array {
    const [exactly, atLeast] = this.#halves(row, encryption);
    const bits = concat(...exactly.slice(0, -1), atLeast.at(-1)!);
    return this.reporting.encrypted(bits, encryption, coins);
  }

  document() {
    return { epsilon_0: String(this.epsilon0), kind: 'histogram', most: this.most };
  }

  #halves(row: Uint8Array, encryption: Encryption): [Uint8Array[], Uint8Array[]] {
    const both = entries(row, encryption.entryBytes);
    return [both.slice(0, this.answers), both.slice(this.answers)];
  }
}

/** Mean number of events of a device, each counted up to `most`. */
export class Mean implements Kind {
  readonly width: number;
  readonly answers = 1;

  constructor(
    readonly most: number,
    readonly variance: Fraction,
  ) {
    if (variance.compare(new Fraction(1, 100)) < 0 || variance.compare(10 ** 8) > 0) {
      throw new PlanError('variance must be 1/100 to 100,000,000');
    }
    this.width = most;
  }

  initial(encryption: Encryption, coins: Coins): Uint8Array {
    return encryption.encrypt(Array<number>(this.most).fill(0), coins);
  }

  afterEvent(row: Uint8Array, encryption: Encryption, coins: Coins): Uint8Array {
    const kept = row.slice(0, row.length - encryption.entryBytes);
    return concat(encryption.encrypt([1], coins), kept);
  }

  reported(row: Uint8Array, encryption: Encryption, coins: Coins): Uint8Array {
    const key = encryption as EncryptionKey; // the one whose ciphertexts can be added
    const noise = key.encryptNumber(coins.discreteGaussian(this.variance), coins);
    return key.rerandomise(key.total(concat(row, noise)), coins);
  }

  document() {
    return { kind: 'mean', most: this.most, variance: String(this.variance) };
  }
}
