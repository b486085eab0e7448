import type { Figures, Job } from "./side.ts";

/** A process for one act. It receives a job over IPC, answers with numbers or an error, and exits. */

export interface Order {
  /** A module next to this file, without the extension. */
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

// If the parent has exited, the result is not needed.
process.once("disconnect", () => process.exit(1));
process.once("message", (order: Order) => {
  void obey(order).then((answer) => process.send?.(answer, () => process.exit(0)));
});
