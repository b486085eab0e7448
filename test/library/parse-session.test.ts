import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { isCorrupt, parseSession, SessionTree } from "../../src/index.ts";
import { anyEntry, damagedEntry } from "../support/arbitraries.ts";
import { header, sessionText, userLine } from "../support/session-text.ts";

describe("reading a session", () => {
  test("[ST22] [ENT3] an entry of any type, with unknown fields, is read back from its line", () => {
    fc.assert(
      fc.property(anyEntry, (value) => {
        const session = parseSession(sessionText(value));
        expect(session.lines.map(isCorrupt)).toEqual([false]);
        const [, written] = SessionTree.from(session).encode().split("\n");
        expect(written).toBe(JSON.stringify({ ...value, parentId: null }));
      }),
    );
  });

  test("[ENT4] for any file content, every line is accounted for and nothing throws", () => {
    const line = fc.oneof(
      anyEntry.map((value) => JSON.stringify(value)),
      damagedEntry.map((value) => JSON.stringify(value)),
      fc.tuple(anyEntry, fc.nat(200)).map(([value, at]) => JSON.stringify(value).slice(0, at)),
      fc.json(),
      fc.string(),
      fc.constant(JSON.stringify(header)),
    );
    fc.assert(
      fc.property(fc.array(line, { maxLength: 12 }), fc.boolean(), (lines, withHeader) => {
        const text = [...(withHeader ? [JSON.stringify(header)] : []), ...lines].join("\n");
        const session = parseSession(text);
        const physical = text
          .split("\n")
          .filter((each) => each.replace(/^\ufeff|\r$/g, "").trim() !== "").length;
        const told = (code: string) => session.diagnostics.filter((each) => each.code === code).length;
        const headers = (session.header === null ? 0 : 1) + told("extra_header");
        expect(session.lines.length + told("foreign_line") + headers).toBe(physical);
        expect(session.lines.filter(isCorrupt)).toHaveLength(told("corrupt_line"));
        const tree = SessionTree.from(session);
        tree.context();
        expect(parseSession(new TextEncoder().encode(text.toWellFormed())).lines).toHaveLength(
          session.lines.length,
        );
      }),
    );
  });

  test("[ENT4] any bytes can be read", () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 200 }), (bytes) => {
        SessionTree.from(parseSession(bytes)).context();
      }),
    );
  });

  test("[ENT4] reads a line nested 200,000 deep, twice", () => {
    const deep = `{"type":"custom","customType":"x","id":"a","parentId":null,"timestamp":"t","data":${"[".repeat(200_000)}${"]".repeat(200_000)}}`;
    const tree = SessionTree.from(parseSession(sessionText(deep, deep)));
    expect(tree.diagnostics.map((each) => each.code)).toEqual(["duplicate_id"]);
  });

  test("[ENT4] a field named corrupt, __proto__ or toString does not confuse the reader", () => {
    const line =
      '{"type":"custom","customType":"x","id":"a","parentId":null,"timestamp":"t","corrupt":1,"__proto__":{"type":"y"},"toString":null}';
    const { lines, diagnostics } = parseSession(sessionText(line));
    expect(diagnostics).toEqual([]);
    expect(lines.map((each) => isCorrupt(each))).toEqual([false]);
    expect(SessionTree.from(parseSession(sessionText(line))).encode()).toBe(sessionText(line));
  });

  test("[ENT4] a torn tail at any byte leaves all complete lines", () => {
    const text = sessionText(userLine("a", null, "héllo"), userLine("b", "a", "世界"));
    const bytes = new TextEncoder().encode(text);
    for (let end = 0; end <= bytes.length; end++) {
      const { lines, header: found } = parseSession(bytes.subarray(0, end));
      const whole = text.slice(0, new TextDecoder().decode(bytes.subarray(0, end)).lastIndexOf("\n") + 1);
      const entries = lines.filter((line) => !isCorrupt(line));
      expect(entries.length).toBeGreaterThanOrEqual(Math.max(0, whole.split("\n").length - 2));
      if (whole !== "") expect(found?.id).toBe("s");
    }
  });

  test("[ENT8] the IDs of version 1 are those of the lines, also when the file grows", () => {
    const lines = ["one", "two"].map((text) =>
      JSON.stringify({ type: "message", timestamp: "t", message: { role: "user", content: text } }),
    );
    const text = [JSON.stringify({ type: "session", id: "old" }), ...lines].join("\n");
    const ids = (source: string) =>
      [...SessionTree.from(parseSession(source)).entries()].map((entry) => entry.id);
    expect(ids(text)).toEqual(["line-2", "line-3"]);
    expect(ids(`${text}\n${lines[0]}`)).toEqual(["line-2", "line-3", "line-4"]);
  });

  test("[ENT8] a body of version 1 under a header of version 3, as a fork in pi leaves it, is still read", () => {
    const body = { type: "message", timestamp: "t", message: { role: "user", content: "one" } };
    expect(SessionTree.from(parseSession(sessionText(body, body))).context().messages).toHaveLength(2);
  });

  test("[ENT11] lines before the header are ignored, JSON or not", () => {
    const text = `Starting up\n{"type":"title"}\n${sessionText(userLine("a", null))}`;
    const { lines, diagnostics } = parseSession(text);
    expect(diagnostics.map(({ code, line }) => [code, line])).toEqual([
      ["foreign_line", 1],
      ["foreign_line", 2],
    ]);
    expect(lines).toHaveLength(1);
  });

  test("[ENT7] [ENT3] null in an unknown field is preserved", () => {
    const odd = {
      ...userLine("a", null),
      future: null,
      message: { role: "assistant", content: null, future: null },
    };
    const [entry] = parseSession(sessionText(odd)).lines;
    expect(entry).toMatchObject({ future: null, message: { content: [], future: null } });
  });

  test.each([
    [
      "an unknown provenance",
      { role: "user", content: "x", provenance: { kind: "scheduled" } },
      { content: "x" },
    ],
    [
      "a field next to the kind of a provenance",
      {
        role: "user",
        content: "x",
        provenance: { kind: "inter_session", sourceSessionKey: null, hops: "3", future: null },
      },
      { content: "x", provenance: { kind: "inter_session", future: null } },
    ],
    ["null in usage", { role: "assistant", content: [], usage: { cost: null } }, { content: [] }],
    ["strings for blocks", { role: "user", content: ["hi"] }, { content: [{ type: "text", text: "hi" }] }],
    [
      "a block without text",
      {
        role: "user",
        content: [
          { type: "text", text: null },
          { type: "text", text: "b" },
        ],
      },
      { content: [{ type: "text", text: "b" }] },
    ],
    [
      "a time that is not a number",
      { role: "user", content: "x", timestamp: "2026-01-01" },
      { content: "x" },
    ],
    ["an empty string for blocks", { role: "assistant", content: "" }, { content: [] }],
  ])("[ENT7] %s is dropped without the message", (_, message, expected) => {
    const session = parseSession(sessionText({ ...userLine("a", null), message }));
    expect(SessionTree.from(session).context().messages).toMatchObject([expected]);
  });

  test("[ENT7] an invalid date does not stop the reader, and a number is a time", () => {
    const times = [1e300, Number.MAX_SAFE_INTEGER, "x", undefined].map((timestamp, index) => ({
      ...userLine(`e${index}`, null),
      timestamp: undefined,
      message: { role: "user", content: "x", timestamp },
    }));
    expect(parseSession(sessionText(...times)).lines).toHaveLength(4);
    const [entry] = parseSession(sessionText({ ...userLine("a", null), timestamp: 1_000 })).lines;
    expect(entry).toMatchObject({ timestamp: "1970-01-01T00:00:01.000Z" });
  });

  test("[ENT7] a shell command that contains null stays a shell command", () => {
    const message = { role: "bashExecution", command: "ls", output: "", exitCode: null };
    const [entry] = parseSession(sessionText({ ...userLine("a", null), message })).lines;
    expect((entry as { message: object }).message).toEqual({
      role: "bashExecution",
      command: "ls",
      output: "",
    });
  });

  test("[ENT8] lines before the header do not count, and an ID takes precedence over an index", () => {
    const v1 = (content: string) =>
      JSON.stringify({ type: "message", timestamp: "t", message: { role: "user", content } });
    const compaction = (more: object) =>
      JSON.stringify({ type: "compaction", timestamp: "t", summary: "S", firstKeptEntryIndex: 2, ...more });
    const text = (more: object) =>
      ['{"type":"title"}', '{"type":"session","id":"old"}', v1("one"), v1("two"), compaction(more)].join(
        "\n",
      );
    const kept = (more: object) => SessionTree.from(parseSession(text(more))).context().entryIds;
    expect(kept({})).toEqual(["line-5", "line-4"]);
    expect(kept({ firstKeptEntryId: "line-3" })).toEqual(["line-5", "line-3", "line-4"]);
  });

  test("[ENT8] a line of a known type whose ID is null gets one", () => {
    const session = parseSession(sessionText({ ...userLine("a", null), id: null }));
    expect(SessionTree.from(session).entry("line-2")).not.toBeNull();
  });

  test("[ENT11] a byte order mark is ignored only at the beginning", () => {
    const marked = `\ufeff${sessionText(userLine("a", null))}\ufeff${JSON.stringify(userLine("b", "a"))}\n`;
    const { header: found, lines } = parseSession(marked);
    expect(found?.id).toBe("s");
    expect(lines.map(isCorrupt)).toEqual([false, true]);
  });

  test("[ENT4] a line that is not an entry is damage once there is a header, even as the first", () => {
    expect(parseSession(sessionText({ no: "entry" })).lines.map(isCorrupt)).toEqual([true]);
  });

  test("[ENT12] if the header is lost in front and written again later, the entries between are kept", () => {
    const text = [userLine("a", null), header, userLine("b", "a")]
      .map((line) => JSON.stringify(line))
      .join("\n");
    const session = parseSession(text);
    expect(session.header?.id).toBe("s");
    expect(SessionTree.from(session).context().messages).toHaveLength(2);
  });
});
