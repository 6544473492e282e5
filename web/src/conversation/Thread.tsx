import { ThreadPrimitive, unstable_useThreadMessageIds as useMessageIds } from '@assistant-ui/react'
import { clsx } from 'clsx'
import { ArrowDown, ArrowDownToLine, ArrowUpToLine } from 'lucide-react'
import { type ReactNode, useCallback, useEffect, useLayoutEffect, useRef, useState } from 'react'
import { type CustomContainerComponent, Virtualizer, type VirtualizerHandle } from 'virtua'
import type { Message } from '@/api/types'
import type { Jump } from '@/conversation/early'
import { AssistantMessage } from '@/conversation/messages/AssistantMessage'
import { useAround } from '@/conversation/messages/context'
import { Summary } from '@/conversation/messages/Summary'
import { UserEdit, UserMessage } from '@/conversation/messages/UserMessage'
import type { State } from '@/conversation/session'
import { type Compaction, useCompactions } from '@/data/compactions'
import { useShortcut } from '@/keys/shortcuts'
import { text } from '@/text'
import { IconButton } from '@/ui/Button'
import { whenReleased } from '@/ui/pressing'

const COMPONENTS = { UserMessage, UserEditComposer: UserEdit, AssistantMessage, SystemMessage: () => null }
/** Distance from the bottom, in px, within which the list counts as scrolled to the bottom. */
const NEAR = 48

export interface Target {
  id: string
  turn: number
}

/** Functions that load and show other parts of the history. */
export interface History {
  loadOlder: () => void
  loadNewer: () => void
  toStart: () => void
  toLatest: () => void
}

interface Props {
  /** The latest messages, which may be other ones than those shown. */
  messages: readonly Message[]
  state: Pick<State, 'older' | 'loadingOlder' | 'early' | 'loadingNewer' | 'jump'>
  history: History
  busy: boolean
  /** The message to scroll to and highlight. */
  target: Target | null
  /** Content after the last message. */
  children: ReactNode
}

/** Distance from an end of the list, in px, at which more messages are loaded. */
const AHEAD = 1_200

/** The virtualized list of messages. It stays at the bottom until the user scrolls up. */
export function Thread({ messages, state, history, busy, target, children }: Props) {
  const { early, jump } = state
  const older = state.older !== null && !early
  const scroller = useRef<HTMLDivElement>(null)
  const list = useRef<VirtualizerHandle>(null)
  const content = useRef<HTMLDivElement>(null)
  const { atEnd, toEnd, letGo, onScroll } = useEnd(scroller, content, !early)
  const ids = useMessageIds()
  const prepended = usePrepended(ids)
  const { session, exists, nodes, replaying } = useAround()
  const compactions = useCompactions(session.id, exists, nodes)
  useGoing(target, ids, list, scroller, letGo)
  useJump(jump, isThere(jump, ids, early?.messages ?? messages), scroller, letGo, toEnd)
  const toStart = () => {
    letGo() // a response that grows meanwhile must not scroll back
    if (replaying) scroller.current?.scrollTo({ top: 0, behavior: 'instant' })
    else history.toStart()
  }
  const toLatest = () => (replaying ? toEnd() : history.toLatest())
  useShortcut('Home', text.conversation.toStart, toStart, text.keys.conversations)
  useShortcut('End', text.conversation.toLatest, toLatest, text.keys.conversations)

  return (
    <div className="relative min-h-0 grow">
      <div
        ref={scroller}
        onScroll={() => {
          onScroll()
          const box = scroller.current
          if (!box) return
          if (older && box.scrollTop < AHEAD) history.loadOlder()
          if (early && box.scrollHeight - box.scrollTop - box.clientHeight < AHEAD) history.loadNewer()
        }}
        // biome-ignore lint/a11y/noNoninteractiveTabindex: scrollable regions must be reachable by keyboard
        tabIndex={0}
        role="log"
        aria-live="off"
        aria-label={text.conversation.messages}
        className="h-full overflow-y-auto overscroll-contain [overflow-anchor:none] focus-visible:outline-offset-[-2px]"
      >
        <div ref={content} className="mx-auto w-full max-w-3xl px-4 pb-6 sm:px-6">
          <p role="status" className="grid h-8 place-items-center text-xs text-faint">
            {state.loadingOlder && text.conversation.loadingOlder}
          </p>
          <Virtualizer
            key={useGeneration(ids)}
            as={Pressable}
            ref={list}
            scrollRef={scroller}
            shift={prepended}
            startMargin={32}
            bufferSize={600}
          >
            {ids.map((id, index) => (
              <div
                key={id}
                data-found={target?.id === id || undefined}
                tabIndex={target?.id === id ? -1 : undefined}
                className={clsx(
                  'flow-root outline-none',
                  index === ids.length - 1 && !early && 'last-message',
                  target?.id === id && 'found',
                )}
              >
                <ThreadPrimitive.MessageByIndex index={index} components={COMPONENTS} />
                <SummaryAfter id={id} compactions={compactions} />
              </div>
            ))}
          </Virtualizer>
          {early && (
            <p role="status" className="grid h-8 place-items-center text-xs text-faint">
              {state.loadingNewer && text.conversation.loadingNewer}
            </p>
          )}
          {children}
        </div>
      </div>
      {older && (
        <IconButton
          label={text.conversation.toStart}
          look="plain"
          onClick={toStart}
          className={clsx('absolute top-2 right-4 rounded-full! shadow-raised', atEnd && 'max-md:hidden')}
        >
          <ArrowUpToLine size={17} aria-hidden />
        </IconButton>
      )}
      {!atEnd && (
        <IconButton
          label={early ? text.conversation.toLatest : text.conversation.toEnd}
          look="plain"
          onClick={() => (early ? history.toLatest() : toEnd('smooth'))}
          className="absolute bottom-3 left-1/2 -translate-x-1/2 rounded-full! shadow-raised"
        >
          {early ? <ArrowDownToLine size={17} aria-hidden /> : <ArrowDown size={17} aria-hidden />}
        </IconButton>
      )}
      <Announcer messages={messages} busy={busy} />
    </div>
  )
}

/** The summary that ends with a message, if there is one. */
function SummaryAfter({ id, compactions }: { id: string; compactions: readonly Compaction[] }) {
  const { session, find } = useAround()
  const stored = find(id)?.stored_id ?? id
  const found = compactions.find((compaction) => compaction.through === stored)
  return found ? <Summary conversation={session.id} compaction={found} /> : null
}

/** The message container. It stays clickable while the list scrolls, because a streaming response scrolls all the time. */
const Pressable: CustomContainerComponent = ({ style, ...rest }) => (
  <div {...rest} style={{ ...style, pointerEvents: undefined }} />
)

/** Return a number that changes when the messages are replaced by others, such as the latest ones by the first ones. */
function useGeneration(ids: readonly string[]): number {
  const [seen, setSeen] = useState({ ids, generation: 0 })
  if (seen.ids === ids) return seen.generation
  const [before, now] = [seen.ids[0], ids[0]]
  const isOther = before !== undefined && now !== undefined && !ids.includes(before) && !seen.ids.includes(now)
  const generation = seen.generation + (isOther ? 1 : 0)
  setSeen({ ids, generation })
  return generation
}

/** Return true if the list already has the messages that the jump leads to. It gets them later than this component. */
function isThere(jump: Jump | null, ids: readonly string[], shown: readonly Message[]): boolean {
  const at = jump?.to === 'start' ? 0 : -1
  return ids.at(at) === shown.at(at)?.id
}

/** After a jump, show that end of the messages. After a jump by the user, focus the list, because the button of the jump is gone. */
function useJump(
  jump: Jump | null,
  there: boolean,
  scroller: React.RefObject<HTMLDivElement | null>,
  letGo: () => void,
  toEnd: () => void,
): void {
  const done = useRef(jump?.turn) // a list that is mounted later doesn't repeat the last jump
  useLayoutEffect(() => {
    if (!jump || jump.turn === done.current || !there || !scroller.current) return
    done.current = jump.turn
    if (jump.to === 'latest') toEnd()
    else {
      letGo()
      scroller.current.scrollTo({ top: 0, behavior: 'instant' })
    }
    if (jump.focus) scroller.current.focus({ preventScroll: true })
  }, [jump, there, scroller, letGo, toEnd])
}

/** Keep the bottom in view when the content grows, if the list `follows` its end and the user has not scrolled up. */
function useEnd(
  scroller: React.RefObject<HTMLDivElement | null>,
  content: React.RefObject<HTMLDivElement | null>,
  follows: boolean,
) {
  const [atEnd, setAtEnd] = useState(follows)
  const stuck = useRef(follows)
  const last = useRef(0)
  const height = useRef(0)

  const toEnd = useCallback(
    (behavior: ScrollBehavior = 'instant') => {
      stuck.current = true
      setAtEnd(true)
      scroller.current?.scrollTo({ top: scroller.current.scrollHeight, behavior })
    },
    [scroller],
  )

  const letGo = useCallback(() => {
    stuck.current = false
    setAtEnd(false)
  }, [])

  const onScroll = useCallback(() => {
    const box = scroller.current
    if (!box) return
    // content may have grown since the user reached the end, so the height before that counts too
    const end =
      box.scrollTop > last.current ? Math.min(box.scrollHeight, height.current || box.scrollHeight) : box.scrollHeight
    const near = follows && end - box.scrollTop - box.clientHeight < NEAR
    height.current = box.scrollHeight
    if (near) stuck.current = true
    else if (box.scrollTop < last.current - 2) stuck.current = false // only scrolling up leaves the bottom; growing content does not
    last.current = box.scrollTop
    setAtEnd(near || stuck.current)
  }, [scroller, follows])

  useLayoutEffect(() => {
    const [box, inner] = [scroller.current, content.current]
    if (!box || !inner) return
    const follow = () => {
      height.current = box.scrollHeight
      if (stuck.current) box.scrollTo({ top: box.scrollHeight, behavior: 'instant' })
    }
    let forget = () => {}
    const observer = new ResizeObserver(() => {
      forget = whenReleased(follow)
    })
    observer.observe(inner)
    observer.observe(box)
    follow()
    return () => {
      observer.disconnect()
      forget()
    }
  }, [scroller, content])

  return { atEnd, toEnd, letGo, onScroll }
}

/** Return true when messages were inserted before the first one, so that the list keeps its position. */
function usePrepended(ids: readonly string[]): boolean {
  const before = useRef<string | undefined>(undefined)
  const first = ids[0]
  const prepended = before.current !== undefined && first !== before.current && ids.includes(before.current)
  useLayoutEffect(() => {
    before.current = first
  })
  return prepended
}

/** ms between checks that the target message is in view, and ms until the checks end. Heights are only known after rendering. */
const [AGAIN, PATIENCE] = [120, 5_000]
/** ms during which the target message keeps the focus, unless the user interacts. */
const HELD = 1_500
const HANDS = ['wheel', 'touchmove', 'pointerdown', 'keydown'] as const

/** Scroll to the target message and focus it, once per request. */
function useGoing(
  target: Target | null,
  ids: readonly string[],
  list: React.RefObject<VirtualizerHandle | null>,
  scroller: React.RefObject<HTMLDivElement | null>,
  letGo: () => void,
): void {
  const been = useRef<Target | null>(null)
  const latest = useRef(ids)
  const timer = useRef(0)
  useEffect(() => () => clearTimeout(timer.current), [])
  useEffect(() => {
    latest.current = ids
    const box = scroller.current
    if (!box || !target || been.current === target || !ids.includes(target.id)) return
    been.current = target
    const end = performance.now() + PATIENCE
    const held = performance.now() + HELD
    const go = () => {
      letGo()
      list.current?.scrollToIndex(latest.current.indexOf(target.id), { align: 'start', offset: -24 })
      timer.current = window.setTimeout(look, AGAIN)
    }
    const look = () => {
      const found = box.querySelector<HTMLElement>('[data-found]')
      const there = found !== null && isInView(found, box)
      if (there) found.focus({ preventScroll: true })
      if (performance.now() > (there ? held : end)) return
      if (there) timer.current = window.setTimeout(look, AGAIN)
      else go()
    }
    const stay = () => clearTimeout(timer.current)
    for (const hand of HANDS) document.addEventListener(hand, stay, { once: true, passive: true })
    clearTimeout(timer.current)
    timer.current = window.setTimeout(go)
  }, [target, ids, list, scroller, letGo])
}

function isInView(element: HTMLElement, box: HTMLElement): boolean {
  const [own, around] = [element.getBoundingClientRect(), box.getBoundingClientRect()]
  return own.top < around.bottom && own.bottom > around.top
}

/** Announce to screen readers the start of a response and, at the end, its full text, but never parts of it. */
function Announcer({ messages, busy }: { messages: readonly Message[]; busy: boolean }) {
  const [announcement, setAnnouncement] = useState('')
  const was = useRef(false)
  useEffect(() => {
    if (busy && !was.current) setAnnouncement(text.conversation.generating)
    if (!busy && was.current) {
      const last = messages.at(-1)
      const response =
        last?.role === 'assistant' ? last.parts.map((part) => (part.type === 'text' ? part.text : '')).join(' ') : ''
      setAnnouncement(response.slice(0, 2_000) || text.common.done)
    }
    was.current = busy
  }, [busy, messages])
  return (
    <p role="status" className="sr-only">
      {announcement}
    </p>
  )
}
