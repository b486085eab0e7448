import type { Terminal } from "./terminal.ts";
import { oneLine } from "./terminal.ts";

const barWidth = 24;
/** The maximum number of redraws, which is limited because terminals are slow. */
const steps = 200;

interface ProgressBar {
  /** Redraws the bar if it has changed. */
  update(done: number, total: number): void;
  /** Removes the bar. */
  end(): void;
}

/** Creates a progress bar on stderr. Prints nothing if stderr cannot redraw a line. */
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
