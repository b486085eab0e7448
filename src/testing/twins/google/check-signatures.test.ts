import { afterAll, beforeAll, describe, test } from "vitest";
import { expectRefused, expectTaken, generateRequest } from "../../../../test/support/twins.ts";
import type { Twin } from "../../server/start-twin.ts";
import { startTwin } from "../../server/start-twin.ts";

let twin: Twin;
beforeAll(async () => {
  twin = await startTwin({ api: "google-generative-ai" });
});
afterAll(() => twin.close());

const user = (...parts: unknown[]) => ({ role: "user", parts });
const model = (...parts: unknown[]) => ({ role: "model", parts });
const hello = { text: "Hello" };

import { signatures } from "../signatures.ts";

const flash = "gemini-2.5-flash";
const pro = "gemini-3-pro-preview";
const sign = (by: string) => signatures.sign("google-generative-ai", by, "Hm");
const call = (thoughtSignature?: unknown) => ({ functionCall: { name: "find", args: {} }, thoughtSignature });
const response = { functionResponse: { name: "find", response: {} } };
const step = (thoughtSignature?: unknown) => [model(call(thoughtSignature)), user(response)];
const missing = "Function call is missing a thought_signature in functionCall parts.";

describe("thought signatures", () => {
  test.each([
    ["no base64", "so!", "signature_base64", "thought_signature' (TYPE_BYTES), Base64 decoding failed"],
    ["cut off", sign(flash).slice(0, 61), "signature_base64", "Base64 decoding failed"],
    ["no text", 4, "signature_base64", "Base64 decoding failed"],
    ["of another model", sign("gemini-2.5-pro"), "signature_corrupted", "Corrupted thought signature."],
    [
      "of another provider",
      signatures.sign("anthropic-messages", flash, "Hm"),
      "signature_corrupted",
      "Corrupted",
    ],
    ["forged", "c2tlaW4=", "signature_corrupted", "Corrupted thought signature."],
  ])("[TWA15] refuses one that is %s", (_, signature, rule, says) =>
    expectRefused(twin, generateRequest({ contents: [user(hello), ...step(signature)] }), { rule, says }),
  );

  test("[TWA15] takes its own on any part, also alone, and the documented stand-ins", async () => {
    const thought = model({ text: "Hm", thought: true }, { ...hello, thoughtSignature: sign(flash) });
    await expectTaken(twin, generateRequest({ contents: [user(hello), thought, user(hello)] }));
    const alone = model(hello, { text: "", thoughtSignature: sign(flash) });
    await expectTaken(twin, generateRequest({ contents: [user(hello), alone, user(hello)] }));
    for (const stand of ["skip_thought_signature_validator", "context_engineering_is_the_way_to_go"]) {
      await expectTaken(twin, generateRequest({ contents: [user(hello), ...step(stand)] }, pro));
    }
  });

  test("[TWA15] from Gemini 3 on, each step of the turn has a signature on its first call", async () => {
    const refused = (contents: object[], by = pro) =>
      expectRefused(twin, generateRequest({ contents }, by), { rule: "signature_missing", says: missing });
    await refused([user(hello), ...step()]);
    await refused([user(hello), ...step(sign(pro)), ...step()]);
    await refused([user(hello), model(call(), call(sign(pro))), user(response, response)]);
    await refused([user(hello), ...step()], "gemini-flash-latest");
  });

  test("[TWA15] it need be on the first call only, not in turns before, and not on older models", async () => {
    const taken = (contents: object[], by = pro) => expectTaken(twin, generateRequest({ contents }, by));
    await taken([user(hello), model(call(sign(pro)), call()), user(response, response)]);
    await taken([user(hello), ...step(), model(hello), user(hello)]);
    await taken([user(hello), ...step(), model(hello), user(hello), ...step(sign(pro)), ...step(sign(pro))]);
    await taken([user(hello), ...step()], flash);
    await taken([user(hello), ...step()], "gemini-3-pro-image-preview");
  });
});
