import { describe, expect, test } from "vitest";
import { apiHeaders, assetHeaders, downloadHeaders, pageHeaders } from "../server/exchange.ts";
import type { Header, HostHeaders } from "./allowed-hosts.ts";
import { checkBinding, findHostProblem } from "./allowed-hosts.ts";

const sites = {
  port: 18790,
  bound: ["0.0.0.0", "::ffff:192.168.1.5", "box.lan"],
  allowedHosts: ["skein.example.org", "dev.example.org:5173", "::2"],
};
const passes = (headers: Partial<HostHeaders>) =>
  findHostProblem({ target: "/", host: "localhost:18790", ...headers }, sites) === null;

describe("allowed hosts and origins", () => {
  test.each<[Header, boolean]>([
    ["localhost:18790", true],
    ["LOCALHOST", true],
    ["127.0.0.1:18790", true],
    ["[::1]:18790", true],
    ["[0:0:0:0:0:0:0:1]", true],
    ["localhost:9000", true],
    ["192.168.1.5:18790", true],
    ["box.lan:18790", true],
    ["skein.example.org", true],
    ["[::2]:18790", true],
    ["dev.example.org:5173", true],
    ["dev.example.org", false],
    ["dev.example.org:80", false],
    [["localhost"], true],
    [["localhost", "localhost"], false],
    [undefined, false],
    ["", false],
    ["evil.test:18790", false],
    ["localhost.evil.test", false],
    ["localhost.", false],
    ["127.0.0.1.nip.io", false],
    ["127.1", false],
    ["2130706433", false],
    ["0x7f.0.0.1", false],
    ["0.0.0.0:18790", false],
    ["[::]:18790", false],
    ["192.168.1.6", false],
    ["::1", false],
    ["[::1", false],
    ["[::1%25eth0]", false],
    ["localhost:0", false],
    ["localhost:99999", false],
    ["localhost:", false],
    ["localhost:80:80", false],
    ["user@localhost", false],
    ["localhost/evil.test", false],
    ["evil.test#localhost", false],
    [" localhost", false],
    ["localhost\t", false],
    ["localhost\n", false],
    ["locаlhost", false],
    ["localhost,evil.test", false],
  ])("[GSA14] Host %j: %s", (host, expected) => {
    expect(passes({ host })).toBe(expected);
  });

  test.each<[string, Header, boolean]>([
    ["localhost:18790", undefined, true],
    ["localhost:18790", "http://localhost:18790", true],
    ["localhost:18790", "http://127.0.0.1:18790", true],
    ["localhost:18790", "http://[::1]:18790", true],
    ["localhost:9000", "http://localhost:9000", true],
    ["localhost:18790", "http://localhost:9000", false],
    ["localhost:18790", "http://localhost", false],
    ["localhost:18790", "https://localhost", false],
    ["localhost:18790", "http://dev.example.org:5173", true],
    ["localhost:18790", "http://dev.example.org", false],
    ["skein.example.org", "https://skein.example.org", true],
    ["127.0.0.1:18790", "https://skein.example.org", true],
    ["127.0.0.1:18790", "https://skein.example.org:8443", false],
    ["skein.example.org:8443", "https://skein.example.org:8443", true],
    ["localhost:18790", "https://evil.test", false],
    ["localhost:18790", "http://evil.test:18790", false],
    ["localhost:18790", "http://localhost.evil.test:18790", false],
    ["localhost:18790", "null", false],
    ["localhost:18790", "", false],
    ["localhost:18790", "localhost:18790", false],
    ["localhost:18790", "file://", false],
    ["localhost:18790", "chrome-extension://localhost:18790", false],
    ["localhost:18790", "http://localhost:18790/", false],
    ["localhost:18790", "http://localhost:18790 https://evil.test", false],
    ["localhost:18790", "http://evil.test@localhost:18790", false],
    ["localhost:18790", ["http://localhost:18790", "https://evil.test"], false],
    ["localhost:18790", [], false],
    ["evil.test:18790", "http://localhost:18790", false],
    ["evil.test", "http://evil.test", false],
  ])("[GSA14] at Host %j, Origin %j: %s", (host, origin, expected) => {
    expect(passes({ host, origin })).toBe(expected);
  });

  test.each<[Header, Header, boolean]>([
    [undefined, undefined, true],
    ["none", "navigate", true],
    ["same-origin", "cors", true],
    ["cross-site", "navigate", true],
    ["cross-site", "no-cors", false],
    ["same-site", "no-cors", false],
    ["cross-site", "websocket", false],
    ["cross-site", undefined, false],
    ["nonsense", "no-cors", false],
    [["none", "none"], "cors", false],
  ])("[GSA14] without Origin, from %j by %j: %s", (fetchSite, fetchMode, expected) => {
    expect(passes({ fetchSite, fetchMode })).toBe(expected);
  });

  test.each(["http://evil.test/", "*", "", "evil.test:443"])(
    "[GSA14] the target %j is not a path",
    (target) => {
      expect(passes({ target })).toBe(false);
    },
  );
});

describe("response headers", () => {
  test("pages run only our files", () => {
    for (const { "content-security-policy": policy = "" } of [pageHeaders, assetHeaders]) {
      expect(policy).toContain("default-src 'none'; script-src 'self';");
      expect(policy).toContain("frame-ancestors 'none'");
      expect(policy).not.toMatch(/unsafe|\*|http/);
    }
  });

  test("data is sandboxed and not cached, and other sites cannot read anything", () => {
    for (const headers of [apiHeaders, downloadHeaders]) {
      expect(headers["content-security-policy"]).toMatch(/^default-src 'none';.*; sandbox$/);
      expect(headers["cache-control"]).toBe("no-store");
    }
    expect(downloadHeaders["content-disposition"]).toBe("attachment");
    for (const headers of [pageHeaders, assetHeaders, apiHeaders, downloadHeaders]) {
      expect(headers).toMatchObject({
        "x-content-type-options": "nosniff",
        "referrer-policy": "no-referrer",
      });
      expect(Object.keys(headers).filter((name) => name.startsWith("access-control"))).toEqual([]);
    }
  });
});

describe("the listening address", () => {
  test.each(["127.0.0.1", "127.8.8.8", "::1", "localhost", "LOCALHOST"])(
    "[GSA16] %s is this machine",
    (host) => {
      expect(() => checkBinding(host, false)).not.toThrow();
    },
  );

  test.each(["0.0.0.0", "::", "192.168.1.5", "box.lan", "", "127.0.0.1.nip.io"])(
    "[GSA16] %j requires an explicit option",
    (host) => {
      expect(() => checkBinding(host, false)).toThrow(/--expose/);
      expect(() => checkBinding(host, true)).not.toThrow();
    },
  );
});
