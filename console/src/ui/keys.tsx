import { useEffect, useEffectEvent } from "react";
import { readStored, writeStored } from "./stored.ts";

/** Whether a key press belongs to a field in which the user is typing. */
export function isTyping({ target }: { readonly target: EventTarget | null }): boolean {
  return target instanceof HTMLElement && (target.isContentEditable || target.matches(fields));
}

/** Whether a key press belongs to an input method. The code 229 covers browsers in which `isComposing` is late. */
export function isInputMethod(event: {
  readonly nativeEvent: KeyboardEvent;
  readonly keyCode: number;
}): boolean {
  return event.nativeEvent.isComposing || event.keyCode === 229;
}

const fields = "textarea, select, input:not([type=checkbox], [type=radio])";

const slot = "skein.keys";

/** Single-letter keys can be turned off, because they conflict with some speech and switch input devices. */
export function hasLetterKeys(): boolean {
  return readStored(slot) !== "off";
}

export function setLetterKeys(isOn: boolean): void {
  writeStored(slot, isOn ? null : "off");
}

/**
 * Handles a page's keys regardless of the focus, except in a text field or a dialog. `null` means that the key
 * currently does nothing. Unless `canRepeat` is set, holding down a key acts only once, because the next row might have
 * moved into the position of the row that the key was pressed for.
 */
export function useKeys(
  keys: Readonly<Record<string, (() => void) | null>>,
  { canRepeat = false }: { readonly canRepeat?: boolean } = {},
): void {
  const onKey = useEffectEvent((event: KeyboardEvent) => {
    if (event.defaultPrevented || isTyping(event) || event.ctrlKey || event.metaKey || event.altKey) return;
    if ((event.repeat && !canRepeat) || (event.key.length === 1 && !hasLetterKeys())) return;
    if (event.target instanceof Element && event.target.closest("[role=dialog]") !== null) return;
    const act = keys[event.key];
    if (act === undefined || act === null) return;
    event.preventDefault();
    act();
  });
  useEffect(() => {
    const listen = (event: KeyboardEvent) => onKey(event);
    addEventListener("keydown", listen);
    return () => removeEventListener("keydown", listen);
  }, []);
}

const isApple = /Mac|iP(?:hone|ad)/.test(navigator.platform);
const symbols: Record<string, string> = {
  Enter: "↵",
  Mod: isApple ? "⌘" : "Ctrl",
  Alt: isApple ? "⌥" : "Alt",
  Shift: "⇧",
  Escape: "Esc",
};

/** A button's key, shown on the button while it is active. */
export function Kbd({ keys }: { readonly keys: string }) {
  if (/^[a-z0-9+-]$/.test(keys) && !hasLetterKeys()) return null;
  return (
    <kbd aria-hidden>
      {keys
        .split(/(?<=\w)\+/)
        .map((key) => symbols[key] ?? key)
        .join(isApple ? "" : "+")}
    </kbd>
  );
}
