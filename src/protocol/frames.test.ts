import { describe, expect, test } from "vitest";
import { atOnce } from "../core/slices.ts";
import { closeCodes, commonProtocol, readRequestInSteps } from "./frames.ts";

const readRequest = (text: string) => atOnce(readRequestInSteps(text));

describe("frames", () => {
  test("a request is parsed, and anything else gets a reason", () => {
    const frame = { type: "req", id: "1", method: "sessions.list", params: { limit: 5 } };
    expect(readRequest(JSON.stringify(frame))).toEqual({ frame });
    expect(readRequest("{torn")).toEqual({ id: null, problem: "The frame is not JSON" });
    expect(readRequest("[]")).toEqual({ id: null, problem: "The frame must be object" });
    expect(readRequest('{"type":"req","id":"7"}')).toEqual({ id: "7", problem: "method is required" });
    expect(readRequest('{"type":"req","id":7,"method":"x"}')).toMatchObject({ id: null });
  });

  test.each([
    [{ min: 1, max: 3 }, [1, 2], 2],
    [{ min: 3, max: 4 }, [1, 2], null],
  ])("of %o and %o, version %s is used", (theirs, ours, expected) => {
    expect(commonProtocol(theirs, ours)).toBe(expected);
  });

  test("every reason to close has its own code", () => {
    const codes = Object.values(closeCodes).map(({ code }) => code);
    expect(new Set(codes).size).toBe(codes.length);
  });
});
