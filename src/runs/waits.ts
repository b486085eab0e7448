/**
 * Waits are edges between runs. A wait that would close a circle is never over: it is not entered.
 *
 * `waitsFor` gives what a run waits for now. Returns the circle, from the run back to itself; `null`: there is none.
 */
export function findCycle(
  from: string,
  targets: readonly string[],
  waitsFor: (runId: string) => readonly string[],
): readonly string[] | null {
  const cameFrom = new Map<string, string>();
  const open: string[] = [];
  const visit = (runId: string, before: string) => {
    if (cameFrom.has(runId)) return;
    cameFrom.set(runId, before);
    open.push(runId);
  };
  for (const target of targets) visit(target, from);
  for (let runId = open.shift(); runId !== undefined; runId = open.shift()) {
    if (runId === from) return wayBack(from, cameFrom);
    for (const next of waitsFor(runId)) visit(next, runId);
  }
  return null;
}

function wayBack(from: string, cameFrom: ReadonlyMap<string, string>): string[] {
  const way = [from];
  let runId = cameFrom.get(from);
  while (runId !== undefined && runId !== from) {
    way.unshift(runId);
    runId = cameFrom.get(runId);
  }
  return [from, ...way];
}
