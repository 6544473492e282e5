import { Chat } from '@ai-sdk/react'
import { Problem } from '@/api/client'
import { approvals, conversations, runs } from '@/api/conversations'
import type { Answer, Approval, Conversation, Failure, Message, Node, Part, Queued, Run } from '@/api/types'
import { type Extra, isLost, transport } from '@/conversation/transport'
import { Watch } from '@/conversation/watch'
import { text } from '@/text'
import { notify, notifyError } from '@/ui/toasts'

const PAGE = 40
/** Messages of the first page: more than a screen shows, few enough to load fast. */
const MOST = 200
/** Messages per page when loading back to a distant message. */
const TREE = 2_000
/** The message tree is not loaded for conversations with more messages. */

export interface State {
  conversation: Conversation | null
  /** The cursor of the previous page. Null if all messages are loaded. */
  older: string | null
  loading: boolean
  loadingOlder: boolean
  approvals: readonly Approval[]
  queue: readonly Queued[]
  nodes: readonly Node[]
  /** The run that is active, waiting or interrupted. */
  live: Run | null
  /** Why the last response failed, if it did. */
  failure: Failure | null
  /** Why the conversation couldn't be opened. */
  error: unknown
  /** The connection is lost and reconnecting. */
  lost: boolean
  /** The conversation that continues this one and should be shown instead. */
  movedTo: string | null
}

const EMPTY: State = {
  conversation: null,
  older: null,
  loading: true,
  loadingOlder: false,
  approvals: [],
  queue: [],
  nodes: [],
  live: null,
  failure: null,
  error: null,
  lost: false,
  movedTo: null,
}

/** A conversation open in this page: its messages, its stream and changes by other clients. */
export class Session {
  readonly id: string
  readonly chat: Chat<Message>
  private state: State = EMPTY
  private readonly listeners = new Set<() => void>()
  private readonly watch: Watch
  private retryTimer: ReturnType<typeof setTimeout> | undefined
  private tries = 0
  private fresh: boolean
  private opened = false
  private syncing: Promise<void> | null = null

  constructor(id: string, fresh: boolean) {
    this.id = id
    this.fresh = fresh
    if (fresh) this.state = { ...EMPTY, loading: false }
    this.chat = new Chat<Message>({
      id,
      transport: transport(),
      generateId: () => crypto.randomUUID(),
      onError: (error) => this.failed(error),
      onFinish: ({ isDisconnect, isError }) => {
        if (!isDisconnect && !isError) this.settled()
      },
    })
    this.watch = new Watch(id, () => void this.sync(true))
  }

  // ── state for React ──────────────────────────────────────────────────────────────────────────────────────────────────────

  subscribe = (listener: () => void): (() => void) => {
    this.listeners.add(listener)
    return () => this.listeners.delete(listener)
  }

  get = (): State => this.state

  private set(changes: Partial<State>): void {
    this.state = { ...this.state, ...changes }
    for (const listener of this.listeners) listener()
  }

  get busy(): boolean {
    return this.chat.status === 'streaming' || this.chat.status === 'submitted'
  }

  // ── loading and synchronization ──────────────────────────────────────────────────────────────────────────────────────────

  /** Start updates while a view shows the conversation. Return a function that stops them. */
  show(): () => void {
    if (!this.opened && !this.fresh) void this.sync(true)
    else if (!this.busy) this.follow()
    this.opened = true
    const awake = () => this.awake()
    addEventListener('online', awake)
    document.addEventListener('visibilitychange', awake)
    return () => {
      removeEventListener('online', awake)
      document.removeEventListener('visibilitychange', awake)
      this.watch.stop()
      clearTimeout(this.retryTimer)
      this.opened = false
    }
  }

  private awake(): void {
    if (document.visibilityState === 'hidden') {
      this.watch.stop()
    } else if (this.state.lost) {
      this.tries = 0
      void this.recover()
    } else if (!this.busy && !this.fresh) {
      void this.sync(true)
    }
  }

  /** Load the state from the server and, with `join`, joins an active run. */
  async sync(join = false): Promise<void> {
    this.syncing ??= this.load(join).finally(() => {
      this.syncing = null
    })
    return this.syncing
  }

  private async load(join: boolean): Promise<void> {
    try {
      const [conversation, page] = await Promise.all([
        conversations.get(this.id),
        conversations.messages(this.id, null, PAGE),
      ])
      this.fresh = false
      if (!this.busy) this.take(page.messages, page.older)
      this.set({ conversation, loading: false, error: null, lost: false })
      this.tries = 0
      const live = ['running', 'queued'].includes(conversation.status)
      void this.around(conversation).catch(() => undefined) // loaded again with the next change
      if (join && live && !this.busy) void this.resume()
      else this.follow()
    } catch (error) {
      if (isLost(error)) this.lose()
      else this.set({ loading: false, error })
    }
  }

  /** Load approvals, queue and branches. They are not needed to show the messages. */
  private async around(conversation: Conversation): Promise<void> {
    const active = conversation.status !== 'standby' && conversation.status !== 'finished'
    const last = this.chat.messages.at(-1)
    const [asked, queue, live, tree, failed] = await Promise.all([
      conversation.status === 'waiting' ? approvals.of(this.id) : [],
      active ? conversations.queue(this.id) : [],
      active ? runs.live(this.id) : [],
      conversation.message_count <= TREE ? conversations.tree(this.id) : null,
      last?.status === 'failed' && last.run ? runs.get(last.run) : null,
    ])
    const started = live.find((run) => run.status !== 'queued') ?? null
    this.set({ approvals: asked, queue, live: started, nodes: tree?.data ?? [], failure: failed?.error ?? null })
  }

  /** Merge the newest page with the loaded messages of the same branch. Unchanged messages keep their identity. */
  private take(page: Message[], older: string | null): void {
    const before = this.chat.messages
    const first = page[0]
    const from = first ? before.findIndex((message) => message.id === first.id) : -1
    const known = new Map(before.map((message) => [message.id, message]))
    const merged = page.map((message) => {
      const same = known.get(message.id)
      return same && JSON.stringify(same) === JSON.stringify(message) ? same : message
    })
    const next = from > 0 ? [...before.slice(0, from), ...merged] : merged
    if (next.length !== before.length || next.some((message, at) => message !== before[at])) this.chat.messages = next
    if (from <= 0) this.set({ older })
  }

  /** Load the page before the first message. */
  async loadOlder(): Promise<void> {
    const { older, loadingOlder } = this.state
    if (!older || loadingOlder) return
    this.set({ loadingOlder: true })
    try {
      const page = await conversations.messages(this.id, older, PAGE * 2)
      const have = new Set(this.chat.messages.map((message) => message.id))
      this.chat.messages = [...page.messages.filter((message) => !have.has(message.id)), ...this.chat.messages]
      this.set({ older: page.older })
    } finally {
      this.set({ loadingOlder: false })
    }
  }

  /** Load a message, switching branches if needed. Return its id in the list, or null if it no longer exists. */
  async reveal(message: string): Promise<string | null> {
    if (!this.chat.messages.length) await this.sync(true)
    const place = this.state.nodes.find((node) => node.id === message)
    const there = this.shownId(message) ?? (place?.shown === false ? null : await this.loadBack(message))
    if (there) return there
    const before = this.state.conversation?.head
    await this.switchTo(message)
    const back = { label: text.common.back, act: () => void this.switchTo(before ?? message).catch(notifyError) }
    notify(text.conversation.otherBranch, { action: back })
    return this.shownId(message) ?? (await this.loadBack(message))
  }

  private shownId(message: string): string | null {
    return this.chat.messages.find((one) => one.stored_id === message || one.id === message)?.id ?? null
  }

  /** Load all messages since the given one. Return null if it isn't on the shown branch. */
  private async loadBack(message: string): Promise<string | null> {
    while (this.state.loadingOlder) await new Promise((wake) => setTimeout(wake, 20))
    this.set({ loadingOlder: true })
    try {
      const found: Message[] = []
      let { older } = this.state
      while (older && !found.some((one) => one.stored_id === message)) {
        const page = await conversations.messages(this.id, older, MOST)
        found.unshift(...page.messages)
        older = page.older
      }
      if (!found.some((one) => one.stored_id === message)) return null
      const have = new Set(this.chat.messages.map((one) => one.id))
      this.chat.messages = [...found.filter((one) => !have.has(one.id)), ...this.chat.messages]
      this.set({ older })
      return this.shownId(message)
    } finally {
      this.set({ loadingOlder: false })
    }
  }

  private async resume(): Promise<void> {
    this.watch.stop()
    await this.chat.resumeStream({ headers: { 'x-ai-sdk-version': '7' } })
    if (this.chat.status === 'ready') this.follow()
  }

  private follow(): void {
    const seq = this.state.conversation?.last_seq
    if (this.opened && document.visibilityState === 'visible' && typeof seq === 'number') this.watch.start(seq)
  }

  /** Reload totals, titles and approvals after a stream ended. */
  private settled(): void {
    setTimeout(() => void this.sync(true), 60)
  }

  // ── reconnection ─────────────────────────────────────────────────────────────────────────────────────────────────────────

  private failed(error: Error): void {
    if (isLost(error)) this.lose()
    else this.settled()
  }

  private lose(): void {
    this.watch.stop()
    this.set({ lost: true, loading: false })
    clearTimeout(this.retryTimer)
    const pause = Math.min(10_000, 500 * 2 ** this.tries++)
    this.retryTimer = setTimeout(() => void this.recover(), pause)
  }

  private async recover(): Promise<void> {
    clearTimeout(this.retryTimer)
    if (!this.opened) return
    const unsent = this.unsent
    if (unsent) {
      this.chat.clearError()
      await this.post(unsent.message, unsent.extra)
    } else {
      this.chat.clearError()
      await this.sync(true)
    }
  }

  /** A prompt that may not have reached the server. Sending it again joins its run. */
  private unsent: { message: { id: string; parts: Part[] }; extra: Extra } | null = null

  // ── user actions ─────────────────────────────────────────────────────────────────────────────────────────────────────────

  /** Send a prompt and streams the response. */
  async send(parts: Part[], extra: Extra = {}): Promise<void> {
    const { session } = await this.continuation()
    await session.post({ id: crypto.randomUUID(), parts }, extra)
  }

  /** Return the session that takes a prompt. For an imported conversation that is a linked copy, which the page shows next. */
  private async continuation(id?: string): Promise<{ session: Session; id?: string }> {
    const { conversation } = this.state
    if (!conversation?.origin) return { session: this, id }
    const stored = this.chat.messages.find((one) => one.id === id)?.stored_id ?? id
    const continued = await conversations.continueFrom(this.id, stored)
    if (continued.conversation.id === conversation.id) return { session: this, id }
    const session = sessionOf(continued.conversation.id)
    await session.sync()
    notify(text.conversation.continued(String(conversation.origin.format ?? text.conversation.itsSource)))
    this.set({ movedTo: session.id })
    return { session, id: continued.message ?? undefined }
  }

  /** Confirm that the page shows the continuing conversation. */
  moved(): void {
    this.set({ movedTo: null })
  }

  private async post(message: { id: string; parts: Part[] }, extra: Extra): Promise<void> {
    this.watch.stop()
    this.fresh = false
    this.unsent = { message, extra }
    this.set({ lost: false, error: null })
    const known = this.chat.messages.some((one) => one.id === message.id)
    await this.chat.sendMessage(
      known ? { role: 'user', parts: message.parts, messageId: message.id } : { ...message, role: 'user' },
      { body: extra },
    )
    if (!isLost(this.chat.error)) this.unsent = null
    if (this.chat.error instanceof Problem && this.chat.error.status === 409) void this.sync(true)
  }

  /** Send a message during a run: queued, or delivered at its next step. */
  async sendDuringRun(parts: Part[], on_busy: 'queue' | 'steer', extra: Omit<Extra, 'on_busy'> = {}): Promise<void> {
    await conversations.submit(this.id, { client_id: crypto.randomUUID(), parts, ...extra, on_busy })
    await this.sync()
  }

  /** Replace a message. The original is kept as another version. */
  async edit(edited: string, parts: Part[], extra: Extra = {}): Promise<void> {
    const { session, id } = await this.continuation(edited)
    session.watch.stop()
    await session.chat.sendMessage({ role: 'user', parts, messageId: id }, { body: extra })
  }

  /** Regenerate a response. The previous one is kept as another version. */
  async regenerate(answer?: string, extra: Extra = {}): Promise<void> {
    const { session, id } = await this.continuation(answer)
    session.watch.stop()
    await session.chat.regenerate({ messageId: id, body: extra })
  }

  async stop(): Promise<void> {
    await conversations.stop(this.id)
  }

  /** Answer an approval and streams the rest of the run. */
  async answer(id: string, answer: Answer): Promise<void> {
    await approvals.answer(id, answer)
    this.set({ approvals: this.state.approvals.filter((one) => one.id !== id) })
    if (!this.busy) void this.resume()
  }

  /** Switch to the branch of a message. */
  async switchTo(message: string): Promise<void> {
    await conversations.switch(this.id, message)
    await this.sync(true)
  }
}

const open = new Map<string, Session>()
const KEPT = 8

/** Return the session of a conversation. `fresh` means that the server doesn't have it yet. */
export function sessionOf(id: string, fresh = false): Session {
  const found = open.get(id) ?? new Session(id, fresh)
  open.delete(id)
  open.set(id, found)
  for (const [other, session] of open) {
    if (open.size <= KEPT) break
    if (!session.busy) open.delete(other)
  }
  return found
}
