/** Aborted by the first of several signals, until it is closed: then nothing of it hangs on any of them. */
export class FirstAbort {
  readonly #controller = new AbortController();
  readonly #leave: (() => void)[] = [];

  constructor(signals: readonly AbortSignal[]) {
    for (const each of signals) this.#listenTo(each);
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  close(): void {
    for (const leave of this.#leave.splice(0)) leave();
  }

  #listenTo(signal: AbortSignal): void {
    const onAbort = () => this.#controller.abort(signal.reason);
    if (signal.aborted) onAbort();
    else signal.addEventListener("abort", onAbort, { once: true });
    this.#leave.push(() => signal.removeEventListener("abort", onAbort));
  }
}
