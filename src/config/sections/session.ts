import { choice, wholeNumber } from "../settings/kinds.ts";
import type { Group, Setting } from "../settings/setting.ts";
import { identityLinks } from "./identity-links.ts";
import { maintenance } from "./maintenance.ts";
import { reset } from "./reset.ts";
import { sendPolicy } from "./send-policy.ts";

const scope: Setting<"per-sender" | "global"> = {
  node: "setting",
  about: "Whether each sender has sessions of their own (per-sender), or all share one (global).",
  kind: choice("per-sender", "global"),
  fallback: () => "per-sender",
};

type DmScope = "per-channel-peer" | "per-peer" | "per-account-channel-peer" | "main";

const dmScope: Setting<DmScope> = {
  node: "setting",
  about:
    "Which direct messages share a session: those of a peer on a channel, of a peer, or of a peer on an account of a channel; main: those of the user are in the main session, all others as per-channel-peer.",
  kind: choice<DmScope>("per-channel-peer", "per-peer", "per-account-channel-peer", "main"),
  fallback: () => "per-channel-peer",
};

const agentToAgent = {
  node: "group",
  about: "How sessions talk to one another.",
  fields: {
    maxPingPongTurns: {
      node: "setting",
      about: "So many turns of answers follow a message from session to session, at the most.",
      kind: wholeNumber(0, 5),
      fallback: () => 5,
    } as Setting<number>,
  },
} satisfies Group;

export const session = {
  node: "group",
  about: "How sessions begin and end.",
  fields: { scope, dmScope, identityLinks, sendPolicy, agentToAgent, reset, maintenance },
} satisfies Group;
