import { Globe, GlobeOff } from 'lucide-react'
import { useId, useRef } from 'react'
import { Link } from 'wouter'
import { useSession } from '@/app/session'
import { text } from '@/text'

const words = text.webSearch
const LOOK =
  'flex size-8 shrink-0 cursor-pointer items-center justify-center rounded-full text-muted hover:bg-hover hover:text-ink aria-pressed:bg-accent-soft aria-pressed:text-accent max-md:size-11'

interface Props {
  /** True to search the web, false not to. Null means that the agent decides. */
  on: boolean | null
  choose: (on: boolean) => void
}

/** A button that turns searching the web on or off. If no search engine is set up, it says so. */
export function WebSearchSwitch({ on, choose }: Props) {
  const { data: session } = useSession()
  if (session && !session.searches_web) return <NotSetUp mayChange={session.scopes.includes('machine')} />
  return (
    <button
      type="button"
      aria-label={words.label}
      aria-pressed={on === true}
      title={on === null ? words.automatic : on ? words.on : words.off}
      onClick={() => choose(on !== true)}
      className={LOOK}
    >
      {on === false ? <GlobeOff size={17} aria-hidden /> : <Globe size={17} aria-hidden />}
    </button>
  )
}

function NotSetUp({ mayChange }: { mayChange: boolean }) {
  const id = useId()
  const button = useRef<HTMLButtonElement>(null)
  const box = useRef<HTMLDivElement>(null)

  function place() {
    const [from, note] = [button.current?.getBoundingClientRect(), box.current]
    if (!from || !note) return
    note.style.left = `${Math.max(8, Math.min(from.left, innerWidth - note.offsetWidth - 8))}px`
    note.style.top = `${Math.max(8, from.top - note.offsetHeight - 6)}px`
    note.focus()
  }

  return (
    <>
      <button
        ref={button}
        type="button"
        aria-label={words.label}
        aria-pressed={false}
        title={words.label}
        popoverTarget={id}
        className={LOOK}
      >
        <Globe size={17} aria-hidden />
      </button>
      <div
        ref={box}
        id={id}
        role="dialog"
        aria-label={words.label}
        tabIndex={-1}
        popover="auto"
        onToggle={(event) => event.newState === 'open' && place()}
        className="fixed inset-auto m-0 w-72 max-w-[calc(100vw-1rem)] rounded-2xl border border-line bg-raised p-4 text-sm text-ink shadow-raised outline-none"
      >
        <p>{words.missing}</p>
        {mayChange ? (
          <Link
            href="/settings/tools"
            className="mt-1 inline-flex min-h-9 items-center font-medium text-accent underline underline-offset-4 max-md:min-h-11"
          >
            {words.setUp}
          </Link>
        ) : (
          <p className="mt-1 text-muted">{words.askOwner}</p>
        )}
      </div>
    </>
  )
}
