import { expect, test, vi } from "vitest";
import { openSkein } from "./app.ts";
import type { App } from "./sessions/app.ts";

test("an abort in this process wakes the worker at once", async () => {
  let inside: App | null = null;
  const skein = await openSkein({ memory: true, config: null, env: {} }, (parts) => {
    inside = parts;
  });
  const { worker, runs } = inside as unknown as App;
  const wake = vi.spyOn(worker, "wake");
  await runs.abort("no-such-run");
  expect(wake).toHaveBeenCalled();
  await skein.close();
});
