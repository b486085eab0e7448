import { afterEach, expect, test } from "vitest";
import type { ReadingFolder } from "../../../test/support/reading-folder.ts";
import { readingFolder } from "../../../test/support/reading-folder.ts";
import { createRedactor } from "../../access/redaction/redactor.ts";
import { said } from "../../conformance/expect.ts";

const open: ReadingFolder[] = [];
afterEach(() => Promise.all(open.splice(0).map((folder) => folder.close())));

test("sixty-four previews of one session with long texts read its beginning once", async () => {
  const folder = await readingFolder();
  open.push(folder);
  const key = "agent:main:session:long";
  await folder.store.sessions.create({}, { key, sessionId: "long", cwd: "/srv", meta: {} });
  const secret = "opensesame-tulip";
  const text = `my word is ${secret} ${"and so on ".repeat(200_000)}`;
  await folder.append({}, "long", said(text), said(text));
  const redactor = createRedactor({ secrets: [secret] });
  let read = 0;
  const counting = {
    ...redactor,
    redact: (given: string) => {
      read += given.length;
      return redactor.redact(given);
    },
    redactJson: (given: unknown) => {
      read += JSON.stringify(given).length;
      return redactor.redactJson(given);
    },
  };
  const counted = await readingFolder({ store: folder.store, redactor: counting });
  const { previews } = await counted.reader("sessions.preview", { keys: Array(64).fill(key), maxChars: 200 });
  expect([previews.length, new Set(previews.map((each) => JSON.stringify(each))).size]).toEqual([64, 1]);
  const shown = previews[0]?.items[0]?.text ?? "";
  // Cut after a whole word.
  expect([shown.length, shown.includes("and so on"), shown.includes(secret)]).toEqual([199, true, false]);
  expect(read).toBeLessThan(100_000);
});
