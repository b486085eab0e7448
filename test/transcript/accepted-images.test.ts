import sharp from "sharp";
import { describe, expect, test } from "vitest";
import { shrinkImage } from "../../src/agents/shrink-image.ts";
import { checkRequest } from "../../src/entry-testing.ts";
import { prepareTranscript, resolveTranscriptPolicy } from "../../src/index.ts";
import { speakers } from "./conversation.ts";
import { ToWire } from "./to-wire.ts";

const red = { channels: 3 as const, background: "red" };
const twoFrames = { raw: { width: 20, height: 40, channels: 3 as const, pageHeight: 20 } };

/** Smaller than 5 MiB before encoding, but larger in base64. */
const large = () => sharp({ create: { ...red, width: 1200, height: 1200 } }).png({ compressionLevel: 0 });
const still = () => sharp({ create: { ...red, width: 20, height: 20 } }).gif();
const animated = () =>
  sharp(Buffer.alloc(20 * 40 * 3).fill(255, 20 * 20 * 3), twoFrames).gif({ delay: [1, 1] });

const images = [
  ["a large PNG", large, "image/png"],
  ["a still GIF", still, "image/gif"],
  ["an animated GIF", animated, "image/gif"],
] as const;

describe.each(speakers)("$provider/$model", (speaker) => {
  const policy = resolveTranscriptPolicy(speaker);

  test.each(images)("[IMG7] accepts %s as sent, shrunk or not", async (_, make, mimeType) => {
    const data = (await make().toBuffer()).toString("base64");
    const messages = [{ role: "user" as const, content: [{ type: "image" as const, data, mimeType }] }];
    const wire = await ToWire.open(policy);
    for (const port of [{ shrink: shrinkImage }, {}]) {
      const { messages: transcript } = await prepareTranscript(messages, policy, { images: port });
      expect(checkRequest(wire.api, await wire.request(transcript))).toBeNull();
      if ("shrink" in port) expect(transcript[0]?.content).toMatchObject([{ type: "image" }]);
    }
  });
});
