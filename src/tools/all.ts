import { agentsList } from "./agents-list.ts";
import { sessionList } from "./session-list.ts";
import { sessionSearch } from "./session-search.ts";
import { sessionStatus } from "./session-status.ts";
import type { SessionTool } from "./session-tool.ts";
import { sessionsHistory } from "./sessions-history.ts";
import { sessionsList } from "./sessions-list.ts";
import { sessionsSend } from "./sessions-send.ts";
import { sessionsSpawn } from "./sessions-spawn.ts";
import { sessionsYield } from "./sessions-yield.ts";
import { subagents } from "./subagents.ts";

/** The tools in `group:sessions`, in the order in which models see them. */
export const sessionToolTable: readonly SessionTool[] = [
  sessionsList,
  sessionsHistory,
  sessionsSend,
  sessionsSpawn,
  sessionsYield,
  sessionStatus,
  subagents,
  sessionSearch,
  sessionList,
  agentsList,
];
