import { afterEach, expect, test, vi } from "vitest";
import { StdoutGuard } from "./stdio-protocol.ts";

afterEach(() => vi.restoreAllMocks());

test("[GMC11] other writes to the output go to stderr until it is released", () => {
  const out = vi.spyOn(process.stdout, "write").mockReturnValue(true);
  const err = vi.spyOn(process.stderr, "write").mockReturnValue(true);
  const guard = new StdoutGuard();
  process.stdout.write("theirs");
  guard.allow(() => process.stdout.write("ours"));
  process.stdout.write("theirs too");
  guard.release();
  process.stdout.write("after");
  expect(out.mock.calls.map(([text]) => text)).toEqual(["ours", "after"]);
  expect(err.mock.calls.map(([text]) => text)).toEqual(["theirs", "theirs too"]);
});
