import { describe, expect, test } from "vitest";
import { silentTerminal } from "../../../test/support/cli.ts";
import { TurnPrinter } from "./turn-printer.ts";

describe("events in a turn", () => {
  test("[CLI36] are one line each next to the answer, no wider than the terminal, and a child's state is shown once", () => {
    let out = "";
    let err = "";
    const terminal = {
      ...silentTerminal("/"),
      columns: 40,
      out: (text: string) => {
        out += text;
      },
      err: (text: string) => {
        err += text;
      },
    };
    const printer = new TurnPrinter(terminal, { notes: "err", text: true, thinking: false });
    const text = "rain\n".repeat(30);
    const child = {
      type: "child",
      childSessionKey: "agent:main:x",
      childRunId: "r",
      state: "running",
    } as const;
    printer.show({ type: "text", delta: "It " });
    printer.show({ type: "thinking", delta: "hidden" });
    printer.show({ type: "tool_call", id: "1", name: "weather", args: { city: "Kyoto" } });
    printer.show({
      type: "tool_result",
      id: "1",
      name: "weather",
      isError: true,
      content: [{ type: "text", text }],
    });
    printer.show(child);
    printer.show(child);
    printer.show({ type: "text", delta: "rains." });
    printer.endLine();
    expect(out).toBe("It \nrains.\n");
    const lines = err.trimEnd().split("\n");
    expect(lines).toEqual([
      '→ weather {"city":"Kyoto"}',
      expect.stringMatching(/^✗ weather: rain rain .*…$/),
      "↳ agent:main:x: running",
    ]);
    for (const line of lines) expect(line.length).toBeLessThanOrEqual(40);
  });

  test("show the complete key of a child, however narrow the terminal is", () => {
    const printed: string[] = [];
    const terminal = { ...silentTerminal("/"), columns: 20, err: (text: string) => void printed.push(text) };
    const printer = new TurnPrinter(terminal, { notes: "err", text: true, thinking: false });
    const childSessionKey = "agent:claude-code:acp:d2e77109a231bf10";
    printer.show({ type: "child", childSessionKey, childRunId: "r", state: "running" });
    expect(printed.join("")).toBe(`↳ ${childSessionKey}: running\n`);
  });

  test.each([
    [["One ", "line."], "│ One line.\n"],
    [["Two\n", "lines\n"], "│ Two\n│ lines\n"],
    [["A\n\nparagraph", "\n\n", "more"], "│ A\n│ \n│ paragraph\n│ \n│ more\n"],
  ])("of kind %j go to stderr, each line with a prefix", (pieces, expected) => {
    const printed = { out: [] as string[], err: [] as string[] };
    const terminal = {
      ...silentTerminal("/"),
      out: (text: string) => void printed.out.push(text),
      err: (text: string) => void printed.err.push(text),
    };
    const printer = new TurnPrinter(terminal, { notes: "err", text: true, thinking: false, asides: true });
    for (const delta of pieces) printer.show({ type: "text", delta });
    printer.endLine();
    expect([printed.out.join(""), printed.err.join("")]).toEqual(["", expected]);
  });
});
