import { readAgentId } from "../../core/names.ts";
import { bytes, flag, text, wholeNumber } from "../settings/kinds.ts";
import type { Group, List, ValueKind } from "../settings/setting.ts";
import { asDefaults, general, inherited } from "./inherited.ts";

/** What sessions of an agent may spawn: of an agent, and of `defaults`. */

const agentOrAny: ValueKind<string> = {
  expected: "an agent id, or * for any",
  schema: { type: "string", pattern: "^(?:\\*|[A-Za-z0-9][A-Za-z0-9_-]{0,63})$" },
  read: (written) => {
    const id = typeof written === "string" ? (written === "*" ? written : readAgentId(written)) : null;
    return id === null ? null : { value: id };
  },
  write: (value) => value,
};
const depth = wholeNumber(1, 5);
const children = wholeNumber(1, 20);
/** Ten years at the most. */
const minutes = wholeNumber(0, 5_256_000);

const about = {
  allowAgents: "Agents under which its sessions may spawn others, by id, * for any; itself always",
  maxSpawnDepth: "How deep spawning may go: 1, and what was spawned spawns nothing; at most 5",
  maxChildren: "How many children of one session may be at work at once, at most 20",
  archiveAfterMinutes: "After so many minutes a child that was spawned for one task is archived; 0: never",
  allow: "Tools that sub-agents get back of those that they are denied, by name, group or glob",
  deny: "Tools that sub-agents are denied beside those, written the same way",
  maxFileBytes: "How large one attachment of a spawn may be",
  maxTotalBytes: "How large all attachments of a spawn may be together",
  keep: "Whether attachments stay when their session is archived or removed",
};
const aboutGroup = "What its sessions may spawn, and what that has.";
const aboutTools = "What is otherwise than the tools that sub-agents are denied anyway.";
const aboutAttachments = "Files that go with a spawn.";

const list = <T>(what: string, of: ValueKind<T>): List<T> => ({ node: "list", about: what, of });
const own = (what: string) => `${what}; none: ${asDefaults}.`;

export const agentSubagents = {
  node: "group",
  about: aboutGroup,
  fields: {
    allowAgents: list(own(about.allowAgents), agentOrAny),
    maxSpawnDepth: inherited(about.maxSpawnDepth, depth),
    maxChildren: inherited(about.maxChildren, children),
    archiveAfterMinutes: inherited(about.archiveAfterMinutes, minutes),
    tools: {
      node: "group",
      about: aboutTools,
      fields: { allow: list(own(about.allow), text), deny: list(own(about.deny), text) },
    },
    attachments: {
      node: "group",
      about: aboutAttachments,
      fields: {
        maxFileBytes: inherited(about.maxFileBytes, bytes),
        maxTotalBytes: inherited(about.maxTotalBytes, bytes),
        keep: inherited(about.keep, flag),
      },
    },
  },
} satisfies Group;

export const generalSubagents = {
  node: "group",
  about: aboutGroup,
  fields: {
    allowAgents: list(`${about.allowAgents}.`, agentOrAny),
    maxSpawnDepth: general(`${about.maxSpawnDepth}.`, depth, 1),
    maxChildren: general(`${about.maxChildren}.`, children, 5),
    archiveAfterMinutes: general(`${about.archiveAfterMinutes}.`, minutes, 60),
    tools: {
      node: "group",
      about: aboutTools,
      fields: { allow: list(`${about.allow}.`, text), deny: list(`${about.deny}.`, text) },
    },
    attachments: {
      node: "group",
      about: aboutAttachments,
      fields: {
        maxFileBytes: general(`${about.maxFileBytes}.`, bytes, 1024 ** 2),
        maxTotalBytes: general(`${about.maxTotalBytes}.`, bytes, 5 * 1024 ** 2),
        keep: general(`${about.keep}.`, flag, false),
      },
    },
  },
} satisfies Group;
