import { describe, expect, test, vi } from "vitest";
import { OpenFiles } from "./session-catalog.ts";
import type { SessionFile } from "./session-file.ts";

const mib = 1024 * 1024;

/** Creates a file with this much of its log in memory. */
function fileOf(heldBytes: number) {
  const close = vi.fn(async () => undefined);
  return { close, file: { heldBytes, isLocked: false, close } as unknown as SessionFile };
}

function world(sizes: readonly number[]) {
  const open = new OpenFiles(100);
  const files = sizes.map(fileOf);
  const use = (index: number, act: () => Promise<unknown> = async () => undefined) =>
    open.using(`${index}`, async () => (files[index] ?? fileOf(0)).file, act);
  const closed = () => files.flatMap(({ close }, index) => (close.mock.calls.length > 0 ? [index] : []));
  return { open, use, closed };
}

describe("file descriptors", () => {
  test("[BDY10] sessions that are not in use are closed at once", async () => {
    const { open, use, closed } = world([0, 0, 0]);
    await use(0);
    await use(1);
    await use(2, async () => {
      expect(open.closeIdle()).toBe(2);
      expect(closed()).toEqual([0, 1]);
    });
    expect(open.closeIdle()).toBe(1);
  });
});

describe("long logs in memory", () => {
  test("the most recently used ones stay while there is room, and short ones do not count", async () => {
    const { open, use, closed } = world([100 * mib, mib, 100 * mib, mib, 100 * mib]);
    for (const index of [0, 1, 2, 3]) await use(index);
    expect(closed()).toEqual([]);
    await use(0);
    await use(4);
    await open.closeAll();
    await Promise.resolve();
    expect(closed()).toEqual([0, 1, 2, 3, 4]);
  });

  test("the least recently used one is removed first", async () => {
    const { use, closed } = world([100 * mib, 100 * mib, 100 * mib]);
    for (const index of [0, 1, 0, 2]) await use(index);
    await vi.waitFor(() => expect(closed()).toEqual([1]));
  });

  test("one larger than the limit stays while it is the newest, and one in use always stays", async () => {
    const { use, closed } = world([300 * mib, 300 * mib]);
    await use(0, async () => {
      await use(1);
      expect(closed()).toEqual([]);
    });
    await use(1);
    await vi.waitFor(() => expect(closed()).toEqual([0]));
  });
});
