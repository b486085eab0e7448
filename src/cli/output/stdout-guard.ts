/**
 * Keeps the standard output of this process for one writer: what anything else writes there goes to the standard error
 * instead, so that a protocol that is spoken over it stays whole.
 */
export class StdoutGuard {
  readonly #write = process.stdout.write;
  #isOurs = false;

  constructor() {
    const toStdout = this.#write.bind(process.stdout) as (...args: readonly unknown[]) => boolean;
    const toStderr = process.stderr.write.bind(process.stderr) as typeof toStdout;
    process.stdout.write = ((...args: readonly unknown[]) =>
      this.#isOurs ? toStdout(...args) : toStderr(...args)) as typeof process.stdout.write;
  }

  /** What is written within reaches the output. */
  ours(write: () => void): void {
    this.#isOurs = true;
    try {
      write();
    } finally {
      this.#isOurs = false;
    }
  }

  release(): void {
    process.stdout.write = this.#write;
  }
}
