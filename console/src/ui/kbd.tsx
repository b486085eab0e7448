import styles from "./kbd.module.css";

const isApple = /Mac|iP(?:hone|ad)/.test(navigator.platform);
const symbols: Record<string, string> = {
  Enter: "↵",
  Mod: isApple ? "⌘" : "Ctrl",
  Alt: isApple ? "⌥" : "Alt",
  Shift: "⇧",
  Escape: "Esc",
};

/** The key of a button, shown on it. */
export function Kbd({ keys }: { readonly keys: string }) {
  return (
    <kbd className={styles.kbd} aria-hidden>
      {keys
        .split("+")
        .map((key) => symbols[key] ?? key)
        .join(isApple ? "" : "+")}
    </kbd>
  );
}
