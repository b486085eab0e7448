import { configuredAgents } from "./agent-settings.ts";
import type { ConfigProblem } from "./problems.ts";
import { nearest, shownValue } from "./problems.ts";
import type { NamesInCode } from "./root.ts";
import type { Config } from "./sections/all.ts";
import { alternatives } from "./settings/kinds.ts";
import type { Source } from "./tree.ts";
import { pathText } from "./tree.ts";

/** Every process has these channels. */
const builtInChannels = ["cli", "console"];

/** Reports references from channels and schedules to agents and channels that do not exist or cannot be used. */
export function checkNames(
  config: Config,
  sources: ReadonlyMap<string, Source>,
  inCode: NamesInCode = { agents: [], channels: [] },
): ConfigProblem[] {
  const configured = configuredAgents({ config, sources }, inCode.agents.length > 0);
  const agents = [...new Set([...inCode.agents, ...configured])];
  const channels = [...new Set([...Object.keys(config.channels), ...inCode.channels, ...builtInChannels])];
  const report = (value: string, path: readonly string[], expected: string, known: readonly string[]) => {
    const at = sources.get(pathText(path));
    if (at === undefined || at.from === "default" || at.from === "option") return [];
    const { secret, ...origin } = at;
    const word = secret ? null : nearest(value, known);
    const suggestion = word === null ? null : `"${word}"`;
    const found = secret ? "the value of a variable" : shownValue(value);
    return [{ at: origin, path, found, expected, suggestion }];
  };
  const checkAgent = (agent: string | null, path: readonly string[]) =>
    agent === null || agents.includes(agent)
      ? []
      : report(agent, path, `an agent: ${alternatives(agents)}`, agents);
  const checkChannel = (channel: string | null, path: readonly string[]) => {
    if (channel === null) return [];
    if (!channels.includes(channel))
      return report(channel, path, `a channel: ${alternatives(channels)}`, channels);
    if (!isInboundOnly(config, channel)) return [];
    return report(channel, path, "a channel with a url, because this one sends no messages", []);
  };
  return [
    ...Object.entries(config.channels).flatMap(([id, { agent }]) => {
      const path = ["channels", id, "agent"];
      if (agent === null || config.session.scope !== "global") return checkAgent(agent, path);
      return report(
        agent,
        path,
        "no agent, because session.scope is global: all messages share a session",
        [],
      );
    }),
    ...Object.entries(config.schedules).flatMap(([name, { agent, deliverTo }]) => [
      ...checkAgent(agent, ["schedules", name, "agent"]),
      ...checkChannel(deliverTo.channel, ["schedules", name, "deliverTo", "channel"]),
    ]),
  ];
}

function isInboundOnly({ channels }: Config, name: string): boolean {
  const channel = Object.hasOwn(channels, name) ? channels[name] : undefined;
  return channel?.type === "webhook" && channel.url === null;
}
