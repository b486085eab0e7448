import type { Terminal } from "./terminal.ts";
import { oneLine } from "./terminal.ts";

const barWidth = 24;
/** Drawn at most so often on the way from 0 to all: a terminal is slow. */
const steps = 200;

interface ProgressBar {
  /** Draws anew, where it looks different. */
  update(done: number, total: number): void;
  /** Takes the bar away. */
  end(): void;
}

/** A bar on stderr for long work; nothing at all where the line cannot be drawn over. */
export function progressBar(terminal: Terminal, title: string): ProgressBar {
  if (!terminal.redraws) return { update: () => undefined, end: () => undefined };
  let drawn = -1;
  return {
    update(done, total) {
      const share = total === 0 ? 1 : Math.min(1, done / total);
      const step = Math.floor(share * steps);
      if (step === drawn) return;
      drawn = step;
      const full = Math.round(share * barWidth);
      const bar = `${"█".repeat(full)}${"░".repeat(barWidth - full)}`;
      const line = oneLine(`${title} ${bar} ${done} of ${total}`, terminal.columns - 1);
      terminal.err(`\r\u001b[K${line}`);
    },
    end() {
      if (drawn !== -1) terminal.err("\r\u001b[K");
      drawn = -1;
    },
  };
}

/** Does something with a bar that is gone afterwards, however it ends. */
export async function withProgress<T>(
  terminal: Terminal,
  title: string,
  act: (update: ProgressBar["update"]) => Promise<T>,
): Promise<T> {
  const bar = progressBar(terminal, title);
  try {
    return await act(bar.update);
  } finally {
    bar.end();
  }
}
