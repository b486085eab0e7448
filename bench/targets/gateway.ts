import type { Target } from "../target.ts";
import { at } from "../target.ts";

const gateway = "skein gateway";
const served = {
  "list, HTTP": "`sessions.list`, 100 of 100k, over HTTP",
  "list, WebSocket": "… over a socket",
  "list during writes, HTTP": "… over HTTP, with a change every 50 ms",
  "history, HTTP": "`chat.history` of sessions that are read often, over HTTP",
  "history, WebSocket": "… over a socket",
  "any history, HTTP": "… of any of 100k, over HTTP",
};
/** The lines of the first page. */
const headlines: Readonly<Record<string, string>> = {
  "list, HTTP": "`sessions.list` over HTTP, 100 of 100k",
  "history, HTTP": "`chat.history` over HTTP",
};

export const serving: readonly Target[] = [
  ...Object.entries(served).flatMap(([name, what]): Target[] => [
    {
      what,
      ...(headlines[name] === undefined ? {} : { headline: headlines[name] }),
      us: at("gateway", name, gateway, "requestsPerSecond"),
      against: at("gateway", name, "bare Fastify route", "requestsPerSecond"),
      goal: { kind: "more", times: name === "any history, HTTP" ? 0.3 : 0.5 },
    },
    {
      what: "… p99 at half load",
      us: at("gateway", name, gateway, "halfP99Ms"),
      goal: { kind: "at most", value: 20 },
    },
  ]),
  ...["each its own session", "all the same one"].flatMap((name): Target[] => [
    {
      what: `1,000 subscribers, ${name}: p99 from emit to receipt`,
      us: at("subscribers", name, gateway, "p99Ms"),
      goal: { kind: "at most", value: 200 },
    },
    {
      what: "… none lost",
      us: at("subscribers", name, gateway, "lost"),
      goal: { kind: "at most", value: 0 },
    },
    {
      what: "… total memory",
      us: at("subscribers", name, gateway, "peakMb"),
      goal: { kind: "at most", value: 400 },
    },
  ]),
  {
    what: "`skein start` ready, 100k sessions",
    headline: "`skein start` ready, 100k sessions",
    us: at("gateway-start", "100k", gateway),
    goal: { kind: "at most", value: 500 },
  },
  {
    what: "`skein sessions ls`, cold, 100k sessions",
    headline: "`skein sessions ls`, cold, 100k sessions",
    us: at("command", "100k", "skein command"),
    goal: { kind: "at most", value: 200 },
  },
];

const consolePage = "skein console";
export const showing: readonly Target[] = [
  {
    what: "console: first paint of the desk with 10k sessions",
    us: at("console", "desk, 10k sessions", consolePage, "paintMs"),
    goal: { kind: "at most", value: 1000 },
  },
  {
    what: "… longest frame while scrolling 5k entries and a result of 1 MB",
    us: at("console", "session, 5k entries and a result of 1 MB", consolePage, "frameMs"),
    goal: { kind: "at most", value: 100 },
  },
  {
    what: "… longest frame while 20 sessions stream",
    us: at("console", "20 sessions stream", consolePage, "frameMs"),
    goal: { kind: "at most", value: 100 },
  },
  {
    what: "… files of the first view, gzipped",
    us: at("console", "files, gzipped", consolePage, "firstLoadKb"),
    goal: { kind: "at most", value: 250 },
  },
];
