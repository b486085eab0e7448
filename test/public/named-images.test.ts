import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { Readable } from "node:stream";
import { afterEach, describe, expect, test } from "vitest";
import { temporaryFolder } from "../../src/entry-testing.ts";
import { run } from "../support/cli.ts";
import { pngOf } from "../support/images.ts";
import { wholeGateway } from "../support/whole-gateway.ts";

const closing: { close(): Promise<unknown> }[] = [];

afterEach(async () => {
  for (const each of closing.splice(0)) await each.close();
});

describe.each([["with a gateway"], ["without a gateway"]])("images named in a message, %s", (how) => {
  async function place() {
    const folder = temporaryFolder("skein-named-");
    closing.push({ close: async () => folder.remove() });
    const gateway = await wholeGateway({ folder });
    if (how === "with a gateway") closing.unshift(gateway);
    else await gateway.close();
    writeFileSync(join(folder.path, "garden.png"), pngOf(2, 2));
    writeFileSync(join(folder.path, "fake.png"), "no image");
    const call = (args: readonly string[], lines?: string) =>
      run([...args, "--dir", gateway.root], {
        cwd: folder.path,
        ...(lines === undefined ? {} : { input: () => ({ stream: Readable.from([lines]), typed: false }) }),
      });
    const images = async () => {
      const shown = await call(["sessions", "show", "main", "--json"]);
      const { messages } = JSON.parse(shown.out) as { messages: { content: unknown }[] };
      return JSON.stringify(messages).match(/"type":"image"/g)?.length ?? 0;
    };
    return { call, images };
  }

  test("[LBR18] [LBR19] send attaches those in the session's folder and names the others", async () => {
    const { call, images } = await place();
    const sent = await call(["send", "main", "describe ./garden.png and fake.png and /etc/secret.png"]);
    expect(sent.exit).toBe(0);
    expect(sent.err).toContain(
      "fake.png was not attached: its content is not a PNG, JPEG, GIF or WebP image.",
    );
    expect(sent.err).toContain("/etc/secret.png was not attached: it is outside the session's folder.");
    expect(sent.err).not.toContain("garden.png was not");
    expect(await images()).toBe(1);
  });

  test("[LBR18] [LBR19] chat does the same", async () => {
    const { call, images } = await place();
    const chatted = await call(["chat", "main"], "describe garden.png and gone.png\n");
    expect(chatted.exit).toBe(0);
    expect(chatted.err).toContain("gone.png was not attached: no such file exists.");
    expect(await images()).toBe(1);
  });
});
