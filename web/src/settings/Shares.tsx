import { Link2 } from 'lucide-react'
import { Link } from 'wouter'
import { type Share, useShareActions, useShares } from '@/data/sharing'
import { Area } from '@/settings/Area'
import { text } from '@/text'
import { RevokeButton } from '@/ui/RevokeButton'
import { Empty, Failed, Loading } from '@/ui/States'
import { type Column, Table } from '@/ui/Table'
import { When } from '@/ui/When'

/** The share links that are currently valid. */
export default function Shares() {
  const { data, error, refetch } = useShares()
  return (
    <Area title={text.settings.shares} about={text.shares.about}>
      {error ? (
        <Failed error={error} retry={() => void refetch()} />
      ) : !data ? (
        <Loading rows={3} />
      ) : data.data.length ? (
        <Table label={text.settings.shares} columns={COLUMNS} rows={data.data} keyOf={(share) => share.id} />
      ) : (
        <Empty icon={Link2} title={text.shares.empty} />
      )}
    </Area>
  )
}

const COLUMNS: readonly Column<Share>[] = [
  {
    head: text.shares.conversation,
    cell: (share) => (
      <Link href={`/c/${share.conversation}`} className="font-medium break-words underline underline-offset-2">
        {share.title || text.common.untitled}
      </Link>
    ),
  },
  { head: text.shares.created, wide: true, cell: (share) => <When at={share.created_at} /> },
  { head: text.shares.expires, cell: (share) => <When at={share.expires_at} /> },
  { head: text.shares.revoke, pinned: true, cell: (share) => <Revoke share={share} /> },
]

function Revoke({ share }: { share: Share }) {
  const { revoke } = useShareActions()
  const name = share.title || text.common.untitled
  return <RevokeButton name={name} busy={revoke.isPending} onConfirm={() => revoke.mutate(share.id)} />
}
