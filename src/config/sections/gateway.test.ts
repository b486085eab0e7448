import { describe, expect, test } from "vitest";
import { parseConfigText } from "../parse-yaml.ts";
import { readTree } from "../read-tree.ts";
import type { Group } from "../settings/setting.ts";
import { gateway } from "./gateway.ts";

const place = { folder: "/p", home: "/home/ann", root: "/r" };
const sections = { node: "group", about: "All.", fields: { gateway } } satisfies Group;

function read(text: string) {
  const { root } = parseConfigText(text, "/p/skein.yaml", () => undefined);
  const { value, problems } = readTree(sections, root === null ? [] : [root], () => place, place);
  return { value, problems: problems.length };
}

describe("gateway settings", () => {
  test("listens only on this machine unless it is configured otherwise", () => {
    expect(read("")).toEqual({
      value: {
        gateway: {
          host: "127.0.0.1",
          port: 18790,
          expose: false,
          allowedHosts: [],
          trustProxy: [],
          basePath: null,
          console: true,
          role: "all",
        },
      },
      problems: 0,
    });
  });

  test.each([
    ["port: 65536", 1],
    ["port: 0", 0],
    ["expose: maybe", 1],
    ['allowedHosts: ["skein.example.org", "localhost:5173", "[::2]:80"]', 0],
    ['allowedHosts: ["https://skein.example.org"]', 1],
    ['allowedHosts: ["*"]', 1],
    ['allowedHosts: ["a b"]', 1],
    ['trustProxy: ["10.0.0.1", "10.0.0.0/8", "::1", "fd00::/8"]', 0],
    ['trustProxy: ["10.0.0.0/33"]', 1],
    ['trustProxy: ["999.0.0.1"]', 1],
    ['trustProxy: ["proxy.lan"]', 1],
    ['basePath: ""', 1],
    ["basePath: /skein", 0],
    ["basePath: /tools/skein.v2", 0],
    ["basePath: skein", 1],
    ["basePath: /skein/", 1],
    ["basePath: /", 1],
    ["basePath: /a/../b", 1],
    ["basePath: /rpc", 1],
    ["basePath: /rpc-tools", 0],
    ["console: false", 0],
    ["console: ./page", 0],
    ["console: 7", 1],
  ])("%s: %d mistakes", (line, problems) => {
    expect(read(`gateway:\n  ${line}\n`).problems).toBe(problems);
  });
});
