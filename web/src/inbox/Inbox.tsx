import { Inbox as InboxIcon } from 'lucide-react'
import { Link } from 'wouter'
import type { Approval } from '@/api/types'
import { ApprovalCard } from '@/conversation/approvals/ApprovalCard'
import { Questions } from '@/conversation/approvals/Questions'
import { useAnswer, useApprovals, useTitleOf } from '@/data/approvals'
import { NotificationsButton } from '@/settings/Notifications'
import { text } from '@/text'
import { age, moment } from '@/ui/format'
import { Empty, Failed, Loading } from '@/ui/States'
import { View } from '@/ui/View'

/** All open approvals and questions. */
export default function Inbox() {
  const { data, error, refetch } = useApprovals()
  return (
    <View title={text.inbox.title} about={text.inbox.about} actions={<NotificationsButton />}>
      {data ? (
        <All approvals={data} />
      ) : error ? (
        <Failed error={error} retry={() => void refetch()} />
      ) : (
        <Loading rows={3} />
      )}
    </View>
  )
}

function All({ approvals }: { approvals: readonly Approval[] }) {
  if (!approvals.length) {
    return (
      <Empty icon={InboxIcon} title={text.inbox.emptyTitle}>
        {text.inbox.empty}
      </Empty>
    )
  }
  return (
    <ul className="max-w-3xl space-y-7">
      {approvals.map((approval) => (
        <Waiting key={approval.id} approval={approval} />
      ))}
    </ul>
  )
}

function Waiting({ approval }: { approval: Approval }) {
  const title = useTitleOf(approval.conversation)
  const give = useAnswer()
  const Card = approval.questions ? Questions : ApprovalCard
  return (
    <li className="min-w-0">
      <div className="flex items-center gap-3 text-sm">
        <Link
          href={`/c/${approval.conversation}`}
          className="flex min-w-0 items-center truncate rounded font-medium hover:underline max-md:min-h-11"
        >
          <span className="truncate">{title || text.inbox.openConversation}</span>
        </Link>
        <span className="ml-auto shrink-0 text-xs text-faint" title={moment(approval.asked_at)}>
          {text.inbox.requested(age(approval.asked_at))}
        </span>
      </div>
      {approval.path.length > 1 && (
        <p title={text.inbox.path} className="truncate text-xs text-muted">
          {approval.path.join(' › ')}
        </p>
      )}
      <Card approval={approval} answer={(answer) => give(approval.id, answer)} />
    </li>
  )
}
