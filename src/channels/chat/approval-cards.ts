import type { Clock } from "../../core/clock.ts";
import { cutText, inLine } from "../../core/text.ts";
import type { Approval } from "../../runs/contract.ts";
import type { CardButton, ChatAction, ChatAdapter, ChatPackages } from "./chat-sdk.ts";
import type { ChatState } from "./chat-state.ts";
import type { AnswerPlace } from "./live-answers.ts";
import { errorAdvice } from "./platform-errors.ts";

/** Where an approval is requested and who may answer it. */
export interface ApprovalPlace extends AnswerPlace {
  /** The peer whose message started the run. */
  readonly peer: string | null;
}

export interface ApprovalPorts {
  /** Returns `null` if the run does not belong to a conversation on this channel. */
  placeOf(runId: string): Promise<ApprovalPlace | null>;
  approval(approvalId: string): Promise<Approval | null>;
  /** Returns a run's pending approvals. */
  openApprovals(runId: string): Promise<readonly Approval[]>;
  /** The first answer is final. A late one is recorded as expired. */
  resolve(approvalId: string, answer: "approved" | "denied", by: string): Promise<unknown>;
  redact(text: string): string;
}

export interface CardOptions extends ApprovalPorts {
  readonly channel: string;
  readonly clock: Clock;
  readonly state: ChatState;
  /** The peers who may answer. If the list is empty, only the person whose message started the run may answer. */
  readonly approvers: readonly string[];
  report(error: unknown): void;
}

export interface OpenChat {
  readonly adapter: ChatAdapter;
  readonly packages: ChatPackages;
  threadOf(place: AnswerPlace): Promise<string>;
}

interface PostedCard {
  readonly threadId: string;
  readonly messageId: string;
  readonly tool: string;
}

/** Short, because Telegram limits a button's data to 64 bytes. */
export const approveAction = "ok";
export const denyAction = "no";
const longestArguments = 700;
const keptMs = 40 * 86_400_000;

/** Asks for approvals with buttons, in the conversation that the run belongs to. */
export class ApprovalCards {
  readonly #options: CardOptions;

  constructor(options: CardOptions) {
    this.#options = options;
  }

  /** Posts the buttons for an approval that a run in this process has requested, unless they have been posted. */
  async ask(chat: OpenChat, { approvalId, runId, ...request }: Approval): Promise<void> {
    const { state, placeOf, redact } = this.#options;
    const place = await placeOf(runId);
    if (place === null || (await state.get(cardKey(approvalId))) !== null) return;
    const threadId = await chat.threadOf(place);
    const tool = inLine(request.toolName, 100);
    const given = redact(JSON.stringify(request.arguments, null, 1));
    const text = `Approval needed: *${tool}*\n${cutText(given, longestArguments)}`;
    const button = (id: string, label: string, style: CardButton["style"]): CardButton => ({
      ...{ id, label, style },
      value: approvalId,
    });
    const buttons = [button(approveAction, "Approve", "primary"), button(denyAction, "Deny", "danger")];
    const { id: messageId } = await chat.adapter.postMessage(
      threadId,
      chat.packages.createCard(text, buttons),
    );
    const card: PostedCard = { threadId, messageId, tool };
    await state.set(cardKey(approvalId), card, keptMs);
    const approval = await this.#options.approval(approvalId);
    if (approval !== null && approval.answer !== null) await this.close(chat, approval);
  }

  /** Answers an approval if the person is allowed to. Otherwise, tells the person why not. */
  async answer(chat: OpenChat, { actionId, value = "", user, thread, threadId }: ChatAction): Promise<void> {
    const { channel, report } = this.#options;
    const problem = await this.#problemWith(chat, { approvalId: value, peer: user.userId, threadId });
    if (problem !== null) {
      await thread?.postEphemeral(user.userId, { markdown: problem }, { fallbackToDM: false }).catch(report);
      return;
    }
    const by = `${channel}:${user.userId} (${inLine(user.fullName || user.userName, 100)})`;
    await this.#options.resolve(value, actionId === approveAction ? "approved" : "denied", by);
  }

  /** Whether this channel has posted buttons for the approval. */
  async isPosted(approvalId: string): Promise<boolean> {
    return (await this.#options.state.get(cardKey(approvalId))) !== null;
  }

  /** Replaces the buttons with the answer. */
  async close(
    chat: OpenChat,
    { approvalId, answer, by }: Pick<Approval, "approvalId" | "answer"> & { readonly by: string | null },
  ): Promise<void> {
    const { state } = this.#options;
    const card = await state.get<PostedCard>(cardKey(approvalId));
    const closed = `${cardKey(approvalId)}:closed`;
    // Every process receives the answer, but only one of them shows it.
    if (card === null || !(await state.setIfNotExists(closed, true, keptMs))) return;
    const name = by === null ? "" : ` by ${/\((.*)\)$/.exec(by)?.[1] ?? by}`;
    const words = {
      approved: `was approved${name}`,
      denied: `was denied${name}`,
      expired: "was not answered in time",
    };
    const text = `*${card.tool}* ${words[answer ?? "expired"]}.`;
    try {
      await chat.adapter.editMessage(card.threadId, card.messageId, chat.packages.createCard(text, []));
    } catch (error) {
      if (errorAdvice(error).isMessageGone) return;
      await state.delete(closed);
      throw error;
    }
  }

  /**
   * Returns why a person may not answer, or `null`. Button presses are untrusted: a modified client can send the ID of
   * any approval from any conversation.
   */
  async #problemWith(
    { adapter }: OpenChat,
    press: { readonly approvalId: string; readonly peer: string; readonly threadId: string },
  ): Promise<string | null> {
    const { state, approvers, placeOf } = this.#options;
    const approval = await this.#options.approval(press.approvalId);
    const card = await state.get<PostedCard>(cardKey(press.approvalId));
    const place = approval === null ? null : await placeOf(approval.runId);
    const chatOf = (threadId: string) => adapter.channelIdFromThreadId(threadId);
    if (place === null || card === null || chatOf(card.threadId) !== chatOf(press.threadId))
      return "This approval does not belong to this conversation.";
    const allowed = approvers.length > 0 ? approvers : [place.peer];
    if (allowed.includes(press.peer)) return null;
    return approvers.length > 0
      ? "You are not one of this channel's approvers."
      : "Only the person who asked for this can approve or deny it.";
  }
}

function cardKey(approvalId: string): string {
  return `skein:approval:${approvalId}`;
}
