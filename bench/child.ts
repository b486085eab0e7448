import type { Figures, Job } from "./side.ts";

/** A process for one act: told over IPC what to do, answers with figures or with what went wrong, and ends. */

export interface Order {
  /** Beside this file, without its ending. */
  readonly module: string;
  readonly act: string;
  readonly job: Job;
}

export type Answer = { readonly figures: Figures } | { readonly problem: string };

async function obey({ module, act, job }: Order): Promise<Answer> {
  try {
    const { acts } = (await import(`./${module}.js`)) as {
      acts: Record<string, (job: Job) => Promise<Figures>>;
    };
    const work = acts[act];
    if (work === undefined) return { problem: `${module} cannot ${act}` };
    return { figures: await work(job) };
  } catch (error) {
    return { problem: error instanceof Error ? (error.stack ?? error.message) : String(error) };
  }
}

// Nobody waits for what is measured after the parent has gone.
process.once("disconnect", () => process.exit(1));
process.once("message", (order: Order) => {
  void obey(order).then((answer) => process.send?.(answer, () => process.exit(0)));
});
