/** What came from outside is wrong: a task, a state, a key. The message shows nothing of it. */
export class InputError extends Error {
  override readonly name = 'InputError';
}

/** The call cannot be made: a value is out of range, or it is not the time for it. */
export class PlanError extends Error {
  override readonly name = 'PlanError';
}

/** A server does not take a report. */
export class SendError extends Error {
  override readonly name = 'SendError';

  /**
   * @param status of the answer; 200 if a leader names the report as one that it does not take.
   * @param again whether it may take the report later: else do not send it again.
   */
  constructor(
    readonly status: number,
    readonly again: boolean,
  ) {
    super(`the server does not take the report: status ${status}`);
  }
}
