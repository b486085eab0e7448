import { execFileSync } from "node:child_process";
import type { About, Acts, Figures, Job } from "../side.ts";
import { timed } from "../side.ts";

export const about: About = { name: "grep", packages: [], durability: "reads the same files" };

export const acts: Acts = { search };

/**
 * Returns the lines that contain every word of a query, compared by bytes, which is grep's fastest mode. Only each
 * session's log is searched.
 */
async function search({ folder, queries = [] }: Job): Promise<Figures> {
  const times: number[] = [];
  let lines = 0;
  for (const query of queries) {
    const [first = "", ...more] = query.split(" ");
    const narrow = more.map((word) => ` | grep -F -- '${word}'`).join("");
    const script = `grep -rhF --include='*.log.jsonl' -- '${first}' .${narrow} | wc -l`;
    times.push(
      await timed(() => {
        const env = { ...process.env, LC_ALL: "C" };
        lines += Number(execFileSync("sh", ["-c", script], { cwd: folder, encoding: "utf8", env }));
      }),
    );
  }
  const sorted = times.toSorted((a, b) => a - b);
  const at = (part: number) => sorted[Math.floor(sorted.length * part)] ?? 0;
  return { p50Ms: at(0.5), p95Ms: at(0.95), maxMs: sorted.at(-1) ?? 0, hitsPerQuery: lines / queries.length };
}
