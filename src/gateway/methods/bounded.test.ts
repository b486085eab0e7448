import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import type { ReadingFolder } from "../../../test/support/reading-folder.ts";
import { readingFolder } from "../../../test/support/reading-folder.ts";

const mib = 1024 * 1024;
const asked = vi.fn();
let folder: ReadingFolder;

beforeEach(async () => {
  folder = await readingFolder({ models: { turnModel: asked } as never });
  await folder.store.sessions.create({}, { key: "agent:main:session:long", sessionId: "long", cwd: "/w" });
});
afterEach(() => folder.close());

const said = (content: string) => ({
  type: "message" as const,
  message: { role: "user" as const, content, timestamp: 1 },
});

describe("the size of a read", () => {
  test.each(["all", "branch"] as const)(
    "pages by bytes cover everything once, in both directions: %s",
    async (along) => {
      const { sessions, upkeep } = { ...folder.store, upkeep: folder.store.upkeep };
      const texts = Array.from({ length: 30 }, () => said("x".repeat(100_000)));
      const ids = await folder.append({}, "long", ...texts);
      await upkeep.bringUpIndex();
      const read = async (range: { readonly before?: string; readonly after?: string }) => {
        const page = await sessions.page({}, "long", { along, limit: 1000, bytes: 350_000, ...range });
        return page ?? { entries: [], hasEarlier: false, hasLater: false, leafId: null };
      };
      const forward = [ids[0] ?? ""];
      for (
        let page = await read({ after: ids[0] ?? "" });
        ;
        page = await read({ after: forward.at(-1) ?? "" })
      ) {
        expect(page.entries.length).toBeLessThanOrEqual(3);
        forward.push(...page.entries.map(({ id }) => id));
        if (!page.hasLater) break;
      }
      expect(forward).toEqual(ids);
      let back = [ids.at(-1) ?? ""];
      for (let page = await read({ before: back[0] ?? "" }); ; page = await read({ before: back[0] ?? "" })) {
        expect(page.entries.length).toBeLessThanOrEqual(3);
        back = [...page.entries.map(({ id }) => id), ...back];
        if (!page.hasEarlier) break;
      }
      expect(back).toEqual(ids);
    },
  );

  test("an entry larger than a page is a page of its own", async () => {
    const [first = "", second] = await folder.append(
      {},
      "long",
      said("a"),
      said("x".repeat(100_000)),
      said("b"),
    );
    await folder.store.upkeep.bringUpIndex();
    const range = { along: "all", limit: 10, bytes: 1000, after: first } as const;
    const page = await folder.store.sessions.page({}, "long", range);
    expect(page?.entries.map(({ id }) => id)).toEqual([second]);
    expect(page?.hasLater).toBe(true);
  });

  test("a context that would not fit into a frame is refused, and no request is built from it", async () => {
    await folder.append({}, "long", ...Array.from({ length: 26 }, () => said("y".repeat(mib))));
    const call = folder.admin("sessions.context", { key: "long", model: "anthropic/claude-sonnet-4-5" });
    await expect(call).rejects.toMatchObject({ code: "too_large" });
    expect(asked).not.toHaveBeenCalled();
  });
});
