/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Epochs: boost only if the gate would, and the message is of a later epoch than the node (thesis 3.3). The thesis has
 * them with equalization, which is the gate "epochs"; any other gate may have them too.
 *
 * Where several parallel jobs share the nodes, a node leaves job A for job B at the end of its slice. It still gets A's
 * messages, from the nodes that have not left yet. Each of them would draw it back, and B would never come to run on
 * all nodes at once: the jobs thrash. With epochs the messages of nodes that stayed behind count for nothing. B's
 * messages carry the newer epoch, and draw the others along. So all nodes go from job to job.
 *
 * The price: of two nodes that have counted differently far, one does not hear the other. Beside busy competitors,
 * which send nothing that could bring the counts together, that is half of all meetings. So where another gate asks for
 * later epochs, a node that runs a competitor hears all messages. It has not left one job for another, and cannot be
 * drawn back.
 */
#ifndef COSCHED_GATE_EPOCHS_H
#define COSCHED_GATE_EPOCHS_H

#include "policy.h"

static inline int cosched_uses_epochs(const struct cosched_policy *policy)
{
	return policy->epochs || policy->gate == COSCHED_GATE_EPOCHS;
}

/* What becomes of a demand that the gate grants for @reason. */
static inline u32 gate_epochs_allows(const struct cosched_policy *policy, const struct cosched_demand *demand,
				     u32 reason)
{
	if (!cosched_uses_epochs(policy) || (policy->gate != COSCHED_GATE_EPOCHS && demand->node_quiet))
		return reason;
	return demand->message_epoch > demand->node_epoch ? COSCHED_REASON_new_epoch : COSCHED_REASON_old_epoch;
}

#endif
