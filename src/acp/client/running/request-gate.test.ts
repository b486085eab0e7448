import { describe, expect, test } from "vitest";
import { RequestGate } from "./request-gate.ts";

const read = (id: unknown) => ({ jsonrpc: "2.0", id, method: "fs/read_text_file" });
const ask = (id: unknown) => ({ jsonrpc: "2.0", id, method: "session/request_permission" });

describe("the requests of an agent at once", () => {
  test("[ATA1] files are read four at a time, the rest in their order as answers are written", () => {
    const gate = new RequestGate();
    const begun = Array.from({ length: 10 }, (_, id) => gate.admit(read(id), 100));
    expect(begun.map((each) => each.length)).toEqual([1, 1, 1, 1, 0, 0, 0, 0, 0, 0]);
    expect(gate.done(2)).toEqual([read(4)]);
    expect(gate.done(2)).toEqual([]);
    expect(gate.done(0)).toEqual([read(5)]);
    expect(gate.admit(ask("p"), 100)).toEqual([ask("p")]);
    expect(gate.done("p")).toEqual([]);
  });

  test("[ATA1] an id that is under way, the 257th, and more than 64 MB are refused until there is room", () => {
    const gate = new RequestGate();
    gate.admit(ask(0), 1);
    expect(gate.admit(ask(0), 1)).toMatch(/this id is under way/);
    for (let id = 1; id < 256; id++) gate.admit(ask(id), 1);
    expect(gate.admit(ask(256), 1)).toMatch(/More than 256 requests/);
    gate.done(0);
    expect(gate.admit(ask(256), 1)).toEqual([ask(256)]);
    const large = new RequestGate();
    expect(large.admit(ask(1), 90_000_000)).toEqual([ask(1)]);
    expect(large.admit(ask(2), 1)).toMatch(/more than 67108864 bytes/);
    large.done(1);
    expect(large.admit(ask(2), 1)).toEqual([ask(2)]);
  });
});
