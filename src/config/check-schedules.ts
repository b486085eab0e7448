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

/** Reports schedules whose agent or channel does not exist. */
export function checkSchedules(
  config: Config,
  sources: ReadonlyMap<string, Source>,
  inCode: NamesInCode = { agents: [], channels: [] },
): ConfigProblem[] {
  const configured = configuredAgents({ config, sources }, inCode.agents.length > 0);
  const agents = [...new Set([...inCode.agents, ...configured])];
  const channels = [...new Set([...Object.keys(config.channels), ...inCode.channels, ...builtInChannels])];
  return Object.entries(config.schedules).flatMap(([name, { agent, deliverTo }]) => {
    const { channel } = deliverTo;
    const report = (value: string, path: readonly string[], expected: string, known: readonly string[]) => {
      const at = sources.get(pathText(path));
      if (at === undefined || at.from === "default" || at.from === "option") return [];
      const { secret, ...origin } = at;
      const word = secret ? null : nearest(value, known);
      const suggestion = word === null ? null : `"${word}"`;
      return [
        {
          at: origin,
          path,
          found: secret ? "the value of a variable" : shownValue(value),
          expected,
          suggestion,
        },
      ];
    };
    const agentPath = ["schedules", name, "agent"];
    const channelPath = ["schedules", name, "deliverTo", "channel"];
    return [
      ...(agent === null || agents.includes(agent)
        ? []
        : report(agent, agentPath, `an agent: ${alternatives(agents)}`, agents)),
      ...(channel === null || channels.includes(channel)
        ? []
        : report(channel, channelPath, `a channel: ${alternatives(channels)}`, channels)),
      ...(channel !== null && isInboundOnly(config, channel)
        ? report(channel, channelPath, `a channel with a url, because this one sends no messages`, [])
        : []),
    ];
  });
}

function isInboundOnly({ channels }: Config, name: string): boolean {
  const channel = Object.hasOwn(channels, name) ? channels[name] : undefined;
  return channel?.type === "webhook" && channel.url === null;
}
