import { afterEach, describe, expect, test } from "vitest";
import type { Json } from "../../src/store/contract.ts";
import { closeAll, withScript } from "../support/skein.ts";

afterEach(closeAll);

describe("the beginning of a turn", () => {
  test("[LIB17] the input stands in the session before state is loaded", async () => {
    let before: Promise<string[]> = Promise.resolve([]);
    const opened = await withScript([{ text: "Yes." }], {
      state: () => [
        {
          key: "k",
          save: (): Json => null,
          load: () => {
            before = opened.lines("a");
          },
        },
      ],
    });
    await opened.skein.session({ sessionId: "a" }).send("Hello").result;
    expect(await before).toEqual(["user: Hello"]);
  });
});
